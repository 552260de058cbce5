// Package timer sends delayed messages to an actor.
//
// A timer that is stopped or set again may already have put its message into the mailbox. Every
// arming therefore has a generation that the message carries, and Mine accepts only the newest one:
//
//	case *timer.Fired:
//		switch {
//		case a.renew.Mine(msg):
//			…
//		}
//
// Proto.Actor's receive timeout and repeated timers race with their cancellation and are not used.
// Timers use only time.AfterFunc, so they follow virtual time in a testing/synctest bubble. A test
// can also attach its own clock to one system.
package timer
