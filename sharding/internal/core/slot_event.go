package core

import "time"

// SlotEvent is an input of a Slot.
type SlotEvent interface{ slotEvent() }

// Inputs of a Slot. Run is the number of an entity's incarnation, so that a late event of an
// earlier one is recognized.
type (
	// Take is a message for an entity.
	Take struct{ Body Body }
	// Passivate asks an entity to stop. The entity may request this itself, and may also request to
	// be forgotten.
	Passivate struct {
		ID     string
		Run    uint64
		Forget bool
	}
	// Terminated reports that an incarnation has ended, for whatever reason, and the messages it
	// has not handled.
	Terminated struct {
		ID     string
		Run    uint64
		Left   []Body
		Failed bool // it could not be created, or panicked too often
		Worked bool // it has handled a message
	}
	// StopAll asks all entities to stop once they have handled their messages. With StoreFails,
	// messages to entities that are not remembered yet are rejected.
	StopAll struct{ StoreFails bool }
	// StopAllNow stops all entities after the message that each is handling.
	StopAllNow struct{}
	// Pass advances the time.
	Pass struct{}
	// Recalled reports, once per tenure, the entities that a majority remembers.
	Recalled struct{ IDs []string }
	// Remembered is the result of Remember: a majority has stored the entities.
	Remembered struct{ IDs []string }
	// Limit sets how many entities may run; 0 means any number.
	Limit struct{ N int }
)

func (Take) slotEvent()       {}
func (Passivate) slotEvent()  {}
func (Terminated) slotEvent() {}
func (StopAll) slotEvent()    {}
func (StopAllNow) slotEvent() {}
func (Pass) slotEvent()       {}
func (Limit) slotEvent()      {}
func (Recalled) slotEvent()   {}
func (Remembered) slotEvent() {}

// SlotEffect is an output of a Slot, to be carried out in order.
type SlotEffect interface{ slotEffect() }

// Outputs of a Slot.
type (
	// Spawn creates an incarnation of an entity. If that fails, it results in Terminated.
	Spawn struct {
		ID  string
		Run uint64
	}
	// Push puts a message into the mailbox of an incarnation.
	Push struct {
		ID   string
		Run  uint64
		Body Body
	}
	// StopEntity puts the stop message after all pushed messages; it results in Terminated.
	StopEntity struct {
		ID  string
		Run uint64
	}
	// StopEntityNow stops an entity after the message that it is handling; it results in
	// Terminated.
	StopEntityNow struct {
		ID  string
		Run uint64
	}
	// Reject rejects a message: too many wait for the entity, or it does not start, or it is
	// stopped now.
	Reject struct{ Body Body }
	// Empty reports, once, that no entity is left after StopAll or StopAllNow.
	Empty struct{}
	// Remember stores an entity at a majority; it results in Remembered.
	Remember struct{ ID string }
	// Forget removes it again; nothing waits for that.
	Forget struct{ ID string }
)

func (Spawn) slotEffect()         {}
func (Push) slotEffect()          {}
func (StopEntity) slotEffect()    {}
func (StopEntityNow) slotEffect() {}
func (Reject) slotEffect()        {}
func (Empty) slotEffect()         {}
func (Remember) slotEffect()      {}
func (Forget) slotEffect()        {}

// Pace bounds how fast the slots of one member start remembered entities without messages.
type Pace interface {
	// Turn assigns a turn to a slot that is to start n entities: when it begins, and how many of
	// them are started in it.
	Turn(now time.Time, n int) (at time.Time, count int)
}

// Room bounds the messages that wait in the slots of one member.
type Room interface {
	// Has reports whether a slot with own messages may get another one.
	Has(own int) bool
	// Hold counts n messages that wait, or -n that no longer wait.
	Hold(n int)
}

// SlotConfig configures when entities start and stop, and how many messages wait for them.
type SlotConfig struct {
	// Idle is the time without a message after which an entity is passivated; 0 means never.
	Idle time.Duration
	// Limit is how many entities may run initially; 0 means any number. Above it, the least
	// recently used entities are passivated.
	Limit int
	// Remember prevents an entity from handling messages before a majority has stored it, and
	// starts the stored entities.
	Remember bool
	// Keep restarts remembered entities for whatever reason they stopped, until the shard moves. It
	// requires Remember.
	Keep bool
	// Pace bounds how fast stored entities are started without messages; nil means all at once.
	Pace Pace
	// HandOff is the time after which an entity that was asked to stop is stopped after the message
	// that it is handling; 0 means never. The messages that wait start it again.
	HandOff time.Duration
	// Stash bounds the messages that wait for one entity, and Room those that wait for all entities
	// of a member; nil means any number.
	Stash int
	Room  Room
	// BackOff is the pause after a failure; it doubles with each failure up to MaxBackOff. After
	// Failures failures without a handled message, the waiting messages are rejected.
	BackOff, MaxBackOff time.Duration
	Failures            int
}
