// Package shell drives a deterministic core from an actor. All cores of this module have one form (Core): they
// take an event and the time, return effects, and say when they want to be woken. The shell is the other half, the same
// for each: it steps the core, carries out its effects, and arms one timer.
//
//	switch m := ctx.Message().(type) {
//	case *actor.Started:
//		a.shell.Start(ctx)
//	case *timer.Fired:
//		a.shell.Fired(ctx, m)
//	case *somethingHappened:
//		a.shell.Step(ctx, core.Happened{…})
//	case *actor.Stopping:
//		a.shell.Stop()
//	}
//
// An event that an effect brings about is stepped after the effects before it. A shell keeps what it has not done
// yet when user code panics or ends the goroutine, and goes on with CarryOn.
package shell
