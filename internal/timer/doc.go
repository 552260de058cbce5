// Package timer sends an actor messages later.
//
// A timer that is stopped or set again may already have put its message into the mailbox.
// Therefore every arming has a generation, the message carries it, and Mine accepts only the newest:
//
//	case *timer.Fired:
//		switch {
//		case a.renew.Mine(msg):
//			…
//		}
//
// Proto.Actor's receive timeout and repeated timers race with their cancellation and are not
// used. Only time.AfterFunc is, so timers follow virtual time in a testing/synctest bubble; a test may
// also Attach a clock of its own to one system.
package timer
