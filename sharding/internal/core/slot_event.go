package core

import "time"

// SlotEvent is an input of a Slot.
type SlotEvent interface{ slotEvent() }

// Inputs of a Slot. Run numbers the incarnations of entities, so that a late word of one is recognised.
type (
	// Take brings a message for an entity.
	Take struct{ Body Body }
	// Passivate asks to end an entity, which may ask itself.
	Passivate struct {
		ID  string
		Run uint64
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
)

func (Take) slotEvent()       {}
func (Passivate) slotEvent()  {}
func (Terminated) slotEvent() {}
func (StopAll) slotEvent()    {}
func (KillAll) slotEvent()    {}
func (Pass) slotEvent()       {}

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
)

func (Spawn) slotEffect()  {}
func (Push) slotEffect()   {}
func (End) slotEffect()    {}
func (Slay) slotEffect()   {}
func (Reject) slotEffect() {}
func (Empty) slotEffect()  {}

// SlotConfig is how entities live.
type SlotConfig struct {
	// Idle is after how long without a message an entity is passivated; 0: never.
	Idle time.Duration
	// Stash bounds the messages that wait for one entity.
	Stash int
	// BackOff is the wait after a failure, doubled with each up to MaxBackOff. After Failures without a
	// handled message what waits is rejected.
	BackOff, MaxBackOff time.Duration
	Failures            int
}
