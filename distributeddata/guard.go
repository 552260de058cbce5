package distributeddata

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// panicked is a panic of user code.
type panicked struct{ text, stack string }

func caught(p any) *panicked {
	return &panicked{fmt.Sprintf("panic: %v", p), string(debug.Stack())}
}

func (p *panicked) Error() string { return p.text }

// stackOf returns the stack of a panic, and "" for any other error. It calls no methods of err,
// which may be the application's.
func stackOf(err error) string {
	switch e := err.(type) { //nolint:errorlint // see above
	case *panicked:
		return e.stack
	case *ModifyError:
		return e.Stack
	}
	return ""
}

// refused returns the error of an update that its modify function rejected.
func refused(key string, why error) *ModifyError {
	e := &ModifyError{Key: key, Reason: why, Stack: stackOf(why)}
	if key != "" {
		e.text = fmt.Sprintf("key %q: ", key)
	}
	e.text += fmt.Sprintf("%v: %v", ErrModify, why) // here: why's methods may end the goroutine
	return e
}

// guarded turns a panic of user code into an error with its stack.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = caught(p)
		}
	}()
	return f()
}

// guard is deferred. It recovers from a panic of an application function, or of a process that
// receives a message.
func (a *replica) guard(what string) {
	if p := recover(); p != nil {
		a.l.r.fault(what, caught(p))
	}
}

// adapted responds with the result of adapt, or with res itself if adapt panics or ends its
// goroutine.
func adapted[R any](r *Replicator, res *R, adapt func(*R) any, respond func(any)) {
	if adapt == nil {
		respond(res)
		return
	}
	out, err := any(res), errExit // in case adapt does not return
	defer func() {
		if err != nil {
			r.fault(fmt.Sprintf("Adapt of %T: the message goes out without it", res), err)
			if f, ok := out.(failing); ok {
				f.failed(err)
			}
		}
		respond(out)
	}()
	defer r.beginUserCall(new("Adapt")).done()
	err = guarded(func() error { out = adapt(res); return nil })
}

// failing is a message that can record that it was not adapted.
type failing interface{ failed(err error) }

// errExit says that a function ended the goroutine that it ran on. errExited is the answer to the
// request that the function belongs to.
var (
	errExit   = errors.New("the function called runtime.Goexit, as FailNow of a test does")
	errExited = fmt.Errorf("%w: %w", ErrModify, errExit)
)

// interrupted runs while the goroutine of the actor exits in the middle of a message because user
// code has called runtime.Goexit. The operations of that message have not happened, since Modify
// runs before a step changes anything, and their callers are answered. The mailbox continues on
// another goroutine; see pinnedDispatcher.
func (a *replica) interrupted() {
	if !a.begun() || a.stopped {
		return
	}
	a.l.r.fault(fmt.Sprintf("a function called runtime.Goexit while %T was handled",
		a.ctx.Message()), errExited)
	for id, p := range a.pending {
		if id > a.before {
			delete(a.pending, id)
			defer a.ended(p, core.Done{}, errExited)
		}
	}
	defer a.settle() // updates that came before are answered before
	for _, d := range a.domains {
		defer d.carryOn()
	}
	a.tellLater()
}

// home is the path of this package.
var home = reflect.TypeFor[replica]().PkgPath()

// asRequest returns the request in a message, including one sent by value and one of a direct call.
func asRequest(message any) (request, bool) {
	v := reflect.ValueOf(message)
	if p, ok := message.(*posted); ok {
		return p.request, true
	}
	if p, ok := message.(*resumed); ok {
		return p.request, true
	}
	if r, ok := message.(request); ok { // a type that embeds a request is not one
		return r, v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Elem().PkgPath() == home
	}
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	r, ok := reflect.TypeAssert[request](p)
	return r, ok
}

// maxStrangers bounds the number of logged message types.
const maxStrangers = 64

// stranger logs an unknown message, once per type, and makes it a dead letter, so that its sender
// is notified.
func (a *replica) stranger(m any) {
	if t := reflect.TypeOf(m); !a.strangers[t] && len(a.strangers) < maxStrangers {
		a.strangers[t] = true
		a.log.Warn("message of an unknown type; messages of this type are dead letters",
			slog.String("type", fmt.Sprint(t)))
	}
	defer a.guard("taking a dead letter")
	letter := &actor.MessageEnvelope{Message: m, Sender: a.ctx.Sender()}
	a.l.system.DeadLetter.SendUserMessage(a.l.r.pid, letter) //nolint:forbidigo // is guarded
}
