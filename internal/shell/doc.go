// Package shell drives a deterministic core from an actor. All cores of this module have one form
// (Core): they take an event and the time, return effects, and report when they want to be woken.
// The shell is the other half, common to all cores: it steps the core, carries out its effects, and
// arms one timer.
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
// If an effect causes an event, the shell steps the event after the preceding effects. If carrying
// out an effect panics, the shell reports that as a bug, see package bugs, and continues with the
// next effect. If a step panics, or user code exits the goroutine, the shell keeps the remaining
// work and continues with CarryOn.
package shell
