package core

import "time"

// SlotEvent is an input of a Slot.
type SlotEvent interface{ slotEvent() }

// Inputs of a Slot. Run numbers the incarnations of entities, so that a late word of one is recognised.
type (
	// Take brings a message for an entity.
	Take struct{ Body Body }
	// Passivate asks to end an entity, which may ask itself, and may ask not to be remembered any more.
	Passivate struct {
		ID     string
		Run    uint64
		Forget bool
	}
	// Terminated says that an incarnation has ended, whoever wanted that, and what it has not handled.
	Terminated struct {
		ID     string
		Run    uint64
		Left   []Body
		Failed bool // it could not be made, or has panicked too often
		Worked bool // it has handled a message
	}
	// StopAll asks all entities to end when they have handled what they have.
	StopAll struct{}
	// KillAll ends all entities after the message that each is handling.
	KillAll struct{}
	// Pass lets time pass.
	Pass struct{}
	// Recalled says, once under a tenure, which entities are remembered: what a majority has.
	Recalled struct{ IDs []string }
	// Remembered answers Remember: a majority has them.
	Remembered struct{ IDs []string }
	// Limit changes how many entities may run; 0: any number.
	Limit struct{ N int }
)

func (Take) slotEvent()       {}
func (Passivate) slotEvent()  {}
func (Terminated) slotEvent() {}
func (StopAll) slotEvent()    {}
func (KillAll) slotEvent()    {}
func (Pass) slotEvent()       {}
func (Limit) slotEvent()      {}
func (Recalled) slotEvent()   {}
func (Remembered) slotEvent() {}

// SlotEffect is an output of a Slot, to be carried out in order.
type SlotEffect interface{ slotEffect() }

// Outputs of a Slot.
type (
	// Spawn makes an incarnation of an entity. If it cannot be made, answer with Terminated.
	Spawn struct {
		ID  string
		Run uint64
	}
	// Push puts a message into its mailbox.
	Push struct {
		ID   string
		Run  uint64
		Body Body
	}
	// End puts the stop message behind all that was pushed; answered by Terminated.
	End struct {
		ID  string
		Run uint64
	}
	// Slay ends it after the message that it is handling; answered by Terminated.
	Slay struct {
		ID  string
		Run uint64
	}
	// Reject gives a message back: too many wait for the entity, or it does not start, or is killed.
	Reject struct{ Body Body }
	// Empty says, once, that no entity is left after StopAll or KillAll.
	Empty struct{}
	// Remember writes an entity down at a majority; answered by Remembered.
	Remember struct{ ID string }
	// Forget takes it out again; nothing waits for that.
	Forget struct{ ID string }
)

func (Spawn) slotEffect()    {}
func (Push) slotEffect()     {}
func (End) slotEffect()      {}
func (Slay) slotEffect()     {}
func (Reject) slotEffect()   {}
func (Empty) slotEffect()    {}
func (Remember) slotEffect() {}
func (Forget) slotEffect()   {}

// SlotConfig is how entities live.
type SlotConfig struct {
	// Idle is after how long without a message an entity is passivated; 0: never.
	Idle time.Duration
	// Limit is how many entities may run at first; 0: any number. Above it the Policy says which are passivated. Idle needs
	// LRU.
	Limit  int
	Policy Policy
	// Remember lets no entity handle anything before a majority knows it, and starts those that are known.
	Remember bool
	// Keep starts what is remembered again whoever asked it to end, until the shard moves. It needs Remember.
	Keep bool
	// Stash bounds the messages that wait for one entity.
	Stash int
	// BackOff is the wait after a failure, doubled with each up to MaxBackOff. After Failures without a
	// handled message what waits is rejected.
	BackOff, MaxBackOff time.Duration
	Failures            int
}
