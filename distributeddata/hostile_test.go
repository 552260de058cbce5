package distributeddata_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/testkit"
)

// Application functions that misbehave. Whatever they do affects only their caller.

// evil is what the functions do; nil: nothing.
type evil func()

// badError panics when its methods are called.
type badError struct{}

func (badError) Error() string   { panic("no text") }
func (badError) Is(error) bool   { panic("is nothing") }
func (badError) Unwrap() []error { panic("holds nothing") }

// misdeeds are things that a function may do, whether it returns afterwards or not.
func misdeeds(dd *distributeddata.Replicator, seen *[]error) map[string]evil {
	note := func(err error) { *seen = append(*seen, err) }
	ctx := context.Background()
	return map[string]evil{
		"panic":                        func() { panic("boom") },
		"panic with nil":               func() { panic(nil) },
		"panic with an error":          func() { panic(badError{}) },
		"exit":                         runtime.Goexit,
		"exit while an error is shown": func() { panic(exitError{}) },
		"get": func() {
			_, err := cart.Get(ctx, dd, distributeddata.Majority)
			note(err)
		},
		"update": func() {
			_, err := cart.Update(ctx, dd, addTo("no"), local)
			note(err)
		},
		"delete": func() { note(cart.Delete(ctx, dd, local)) },
		"transaction": func() {
			note(distributeddata.Atomically(ctx, dd, func(*distributeddata.Tx) error {
				return nil
			}, local))
		},
		"close": func() { note(dd.Close(ctx)) },
		"ready": func() { note(dd.Ready(ctx)) },
		"read": func() {
			_, err := cart.Get(ctx, dd)
			_ = slices.Collect(dd.Keys())
			if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
				panic(err)
			}
		},
	}
}

type exitError struct{}

func (exitError) Error() string { runtime.Goexit(); return "" }

// mean is a replicated type whose methods are evil.
type mean struct {
	text  string
	evils *meanness
}

type meanness struct{ merge, encode, decode evil }

func (e evil) do() {
	if e != nil {
		e()
	}
}

func (m mean) Merge(o mean) mean {
	m.evils.merge.do()
	return mean{max(m.text, o.text), m.evils}
}

func (m mean) AppendBinary(b []byte) ([]byte, error) {
	m.evils.encode.do()
	return append(b, m.text...), nil
}

func (m mean) Decode(b []byte) (mean, error) {
	m.evils.decode.do()
	return mean{string(b), m.evils}, nil
}

// meanCodec is a codec of elements.
type meanCodec struct{ evils *meanness }

func (c meanCodec) Append(b []byte, e string) ([]byte, error) {
	c.evils.encode.do()
	return append(b, e...), nil
}

func (c meanCodec) Decode(b []byte) (string, error) {
	c.evils.decode.do()
	return string(b), nil
}

// hooks make the replicator run e in each of the functions that it is given. p sends the requests.
func hooks(dd *distributeddata.Replicator, p *testkit.Probe, e evil) map[string]func() {
	ctx := context.Background()
	bad := func(w *crdt.Writer, v *items) error { v.Add(w, "half"); e(); return badError{} }
	own := func(at *meanness) distributeddata.Key[mean] {
		return distributeddata.NewKey("own", mean{evils: at})
	}
	set := func(at *meanness) distributeddata.Key[crdt.ORSet[string]] {
		return distributeddata.NewKey("set", crdt.NewORSet[string](meanCodec{at}))
	}
	write := func(text string) func(*crdt.Writer, *mean) error {
		return func(_ *crdt.Writer, v *mean) error { v.text = text; return nil }
	}
	written := func(to *evil, at *meanness) { // from here on the function is evil
		_, err := own(at).Update(ctx, dd, write("w"), local)
		if err != nil {
			panic(err)
		}
		*to = e
	}
	return map[string]func(){
		"Modify": func() { _, _ = cart.Update(ctx, dd, bad, local) },
		"Modify that nobody waits for": func() {
			p.Send(dd.PID(), &distributeddata.Update[items]{Key: cart, At: local, Modify: bad})
		},
		"Modify of a message": func() {
			p.Request(dd.PID(), &distributeddata.Update[items]{Key: cart, Modify: bad,
				At: distributeddata.Majority})
			testkit.Expect[*distributeddata.UpdateResponse[items]](p)
		},
		"Modify of a transaction": func() {
			_ = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
				cart.In(tx).Add(tx.Writer, "half")
				e()
				return badError{}
			}, distributeddata.Majority)
		},
		"Adapt of Get": func() {
			p.Request(dd.PID(), &distributeddata.Get[items]{
				Key: cart, Adapt: func(r *distributeddata.GetResponse[items]) any {
					e()
					return r
				}})
			testkit.Expect[*distributeddata.GetResponse[items]](p)
		},
		"Adapt of Update": func() {
			p.Request(dd.PID(), &distributeddata.Update[items]{
				Key: cart, Modify: addTo("a"), At: distributeddata.Majority,
				Adapt: func(r *distributeddata.UpdateResponse[items]) any {
					e()
					return r
				},
			})
			testkit.Expect[*distributeddata.UpdateResponse[items]](p)
		},
		"Adapt of Delete": func() {
			p.Request(dd.PID(), &distributeddata.Delete[items]{
				Key: cart, At: local, Adapt: func(r *distributeddata.DeleteResponse[items]) any {
					e()
					return r
				}})
			testkit.Expect[*distributeddata.DeleteResponse[items]](p)
		},
		"Adapt of Transaction": func() {
			p.Request(dd.PID(), &distributeddata.Transaction{
				Modify: func(*distributeddata.Tx) error {
					return nil
				},
				At:    local,
				Adapt: func(r *distributeddata.TransactionResponse) any { e(); return r },
			})
			testkit.Expect[*distributeddata.TransactionResponse](p)
		},
		"Adapt of what is refused": func() {
			none := distributeddata.NewKey("", items{})
			p.Request(dd.PID(), &distributeddata.Get[items]{
				Key: none, Adapt: func(r *distributeddata.GetResponse[items]) any {
					e()
					return r
				}})
			testkit.Expect[*distributeddata.GetResponse[items]](p)
		},
		"Adapt of Changed": func() {
			_, _ = cart.Update(ctx, dd, addTo("a"), local)
			stop := cart.Subscribe(dd, p.PID(), func(c *distributeddata.Changed[items]) any {
				e()
				return c
			})
			testkit.Expect[*distributeddata.Changed[items]](p) // at once
			_, _ = cart.Update(ctx, dd, addTo(fmt.Sprint(time.Now().UnixNano())), local)
			testkit.Expect[*distributeddata.Changed[items]](p) // by the timer
			stop()
		},
		"AppendBinary": func() {
			var at meanness
			at.encode = e
			_, _ = own(&at).Update(ctx, dd, write("x"), local)
		},
		"Decode": func() {
			var at meanness
			written(&at.decode, &at)
			_, _ = own(&at).Update(ctx, dd, write("y"), local)
			_, _ = own(&at).Get(ctx, dd, distributeddata.Majority)
			_ = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
				own(&at).In(tx).text = "z"
				return nil
			}, local)
		},
		"Merge": func() {
			var at meanness
			written(&at.merge, &at)
			_, _ = own(&at).Get(ctx, dd, distributeddata.Majority)
		},
		"Decode for a subscriber": func() {
			var at meanness
			written(&at.decode, &at)
			stop := own(&at).Subscribe(dd, p.PID(), nil)
			testkit.Expect[*distributeddata.Changed[mean]](p)
			at.decode = nil
			_, _ = own(&at).Update(ctx, dd, write("other"), local)
			testkit.Expect[*distributeddata.Changed[mean]](p)
			stop()
		},
		"encoding of an element": func() {
			at := meanness{encode: e}
			_, _ = set(&at).Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
				v.Add(w, "e")
				return nil
			}, local)
		},
		"decoding of an element": func() {
			at := meanness{decode: e}
			_, _ = set(&at).Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
				v.Add(w, "e")
				_ = slices.Collect(v.All())
				return nil
			}, local)
		},
	}
}

// Every function, every misdeed: afterwards the replicator is the same one, holds what it held, and
// continues.
func TestHostile_EveryFunctionMayDoWhatItMustNot(t *testing.T) {
	for what := range misdeeds(nil, new([]error)) {
		for where := range hooks(nil, nil, nil) {
			t.Run(where+"/"+what, func(t *testing.T) {
				early(t, func(t *testing.T, system *actor.ActorSystem,
					dd *distributeddata.Replicator, up func()) {
					up()
					ctx := context.Background()
					other := distributeddata.NewKey("other", items{})
					_, err := other.Update(ctx, dd, addTo("kept"), local)
					require.NoError(t, err)
					was, p := dd.Status().Replica, testkit.NewProbe(t, system)
					var errs []error
					begin, done := time.Now(), make(chan struct{})
					go func() { // runtime.Goexit ends the goroutine of a local read
						defer close(done)
						hooks(dd, p, misdeeds(dd, &errs)[what])[where]()
					}()
					<-done
					synctest.Wait()
					require.Less(t, time.Since(begin), time.Second, "nobody waits for a deadline")
					for _, err := range errs {
						require.ErrorIs(t, err, distributeddata.ErrInvalid)
					}
					_, err = other.Update(ctx, dd, addTo("more"), distributeddata.Majority)
					require.NoError(t, err)
					v, err := other.Get(ctx, dd, distributeddata.Majority)
					require.NoError(t, err)
					require.Equal(t, []string{"kept", "more"}, slices.Collect(v.All()))
					require.Equal(t, was, dd.Status().Replica, "the actor was not restarted")
				})
			})
		}
	}
}

// A function that never returns blocks only what needs the replicator's goroutine, and that only
// until its time is up.
func TestHostile_AFunctionThatNeverReturns(t *testing.T) {
	alone(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		ctx := context.Background()
		_, err := cart.Update(ctx, dd, addTo("a"), local)
		require.NoError(t, err)
		release := make(chan struct{})
		defer close(release)
		go func() {
			_, _ = cart.Update(ctx, dd, func(*crdt.Writer, *items) error { <-release; return nil },
				local)
		}()
		synctest.Wait()
		v, err := cart.Get(ctx, dd)
		require.NoError(t, err, "local reads go on")
		require.Equal(t, 1, v.Len())
		calls := map[string]func() error{
			"get": func() error {
				_, err := cart.Get(ctx, dd, distributeddata.Majority)
				return err
			},
			"update": func() error {
				_, err := cart.Update(ctx, dd, addTo("b"),
					local)
				return err
			},
			"delete": func() error { return cart.Delete(ctx, dd, local) },
			"transaction": func() error {
				return distributeddata.Atomically(ctx, dd, func(*distributeddata.Tx) error {
					return nil
				}, local)
			},
		}
		testkit.ExpectLog(t, system, testkit.Log{Level: slog.LevelWarn, Times: 1,
			Message: "a function of the application occupies the replicator",
			Attrs:   map[string]any{"what": "cart"}}, func() {
			for what, call := range calls {
				begin := time.Now()
				err := call()
				require.ErrorIs(t, err, distributeddata.ErrUnknown, what)
				require.ErrorIs(t, err, context.DeadlineExceeded, what)
				require.ErrorContains(t, err, `busy in a function passed for "cart"`, what)
				require.Less(t, time.Since(begin), 6*time.Second, what)
			}
		})
		require.ErrorContains(t, lifecycle.Of(system).Check(), `in a function passed for "cart"`)
		begin := time.Now()
		err = dd.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `busy in a function passed for "cart"`)
		require.Less(t, time.Since(begin), 6*time.Second)
		_, err = cart.Get(ctx, dd)
		require.ErrorIs(t, err, distributeddata.ErrClosed)
	})
}

// A goroutine that a function starts and waits for cannot be distinguished from others: its call
// fails when its time is up.
func TestHostile_ACallOfAGoroutineThatModifyWaitsFor(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		begin, ended := time.Now(), make(chan struct{})
		var inner error
		_, err := cart.Update(context.Background(), dd, func(w *crdt.Writer, v *items) error {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, inner = cart.Get(context.Background(), dd, distributeddata.Majority)
			}()
			<-done
			close(ended)
			v.Add(w, "a")
			return nil
		}, distributeddata.Majority)
		<-ended
		require.ErrorIs(t, inner, distributeddata.ErrUnknown)
		require.Less(t, time.Since(begin), 6*time.Second)
		require.True(t, err == nil || errors.Is(err, distributeddata.ErrUnknown), err)
		require.NoError(t, resultOf2(cart.Update(context.Background(), dd, addTo("b"),
			distributeddata.Majority)))
	})
}

func resultOf2[T any](_ T, err error) error { return err }

// A function of one replicator may call another one, even while that runs one of its own.
func TestHostile_AnotherReplicatorMayBeCalled(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		other, err := distributeddata.New(system, distributeddata.Config{Name: "other"})
		require.NoError(t, err)
		up()
		ctx := context.Background()
		defer func() { require.NoError(t, other.Close(ctx)) }()
		go func() {
			_, _ = cart.Update(ctx, other, func(*crdt.Writer, *items) error {
				time.Sleep(time.Second)
				return nil
			}, local)
		}()
		synctest.Wait()
		var deep func(n int) error
		deep = func(n int) error {
			if n > 0 {
				return deep(n - 1)
			}
			require.ErrorIs(t, resultOf2(cart.Get(ctx, dd, distributeddata.Majority)),
				distributeddata.ErrInvalid)
			return resultOf2(cart.Update(ctx, other, addTo("x"), local))
		}
		require.NoError(t, resultOf2(cart.Update(ctx, dd, func(*crdt.Writer, *items) error {
			return deep(500)
		}, local)))
	})
}

// A subscriber is notified of the failure; each failure is counted, and logged at most once a
// second.
func TestHostile_SubscribersAreToldOfFailures(t *testing.T) {
	for name, fail := range map[string]evil{"panic": func() {
		panic(badError{})
	}, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
				up func()) {
				up()
				ctx := context.Background()
				var at meanness
				own := distributeddata.NewKey("own", mean{evils: &at})
				write := func(text string) {
					_, err := own.Update(ctx, dd, func(_ *crdt.Writer, v *mean) error {
						v.text = text
						return nil
					}, local)
					require.NoError(t, err)
				}
				write("a")
				p, q, good := testkit.NewProbe(t, system), testkit.NewProbe(t, system),
					testkit.NewProbe(t, system)
				at.decode = fail
				own.Subscribe(dd, p.PID(), nil)
				c := testkit.Expect[*distributeddata.Changed[mean]](p)
				require.Error(t, c.Err)
				require.False(t, c.Deleted)
				at.decode = nil
				synctest.Wait() // that failure has been logged
				before := dd.Status().Faults
				testkit.ExpectLog(t, system,
					testkit.Log{Message: "a function of the application failed", Times: 3}, func() {
						own.Subscribe(dd, q.PID(), func(*distributeddata.Changed[mean]) any {
							fail()
							return nil
						})
						own.Subscribe(dd, good.PID(), nil)
						for i := range 20 { // 3 seconds
							c := testkit.Expect[*distributeddata.Changed[mean]](q)
							require.ErrorContains(t, c.Err, "Adapt")
							require.NoError(t, testkit.Expect[*distributeddata.Changed[mean]](
								good).Err)
							time.Sleep(100 * time.Millisecond)
							write(fmt.Sprint(i))
						}
					})
				require.GreaterOrEqual(t, dd.Status().Faults-before, uint64(20))
			})
		})
	}
}

// evilProcess is a process behind a PID: it runs on the goroutine of the sender.
type evilProcess struct{ evil }

func (p evilProcess) SendUserMessage(*actor.PID, any)   { p.evil() }
func (p evilProcess) SendSystemMessage(*actor.PID, any) {}
func (p evilProcess) Stop(*actor.PID)                   {}

// A response may reach a process that panics, or an event stream subscriber that does.
func TestHostile_WhateverTakesTheResponse(t *testing.T) {
	for name, fail := range map[string]evil{"panic": func() {
		panic("boom")
	}, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
				up func()) {
				up()
				was := dd.Status().Replica
				pid, ok := system.ProcessRegistry.Add(evilProcess{fail}, "evil")
				require.True(t, ok)
				defer system.ProcessRegistry.Remove(pid)
				sub := system.EventStream.Subscribe(func(any) { fail() })
				cart.Subscribe(dd, pid, nil)
				for _, to := range []*actor.PID{pid, system.NewLocalPID("nobody")} {
					system.Root.RequestWithCustomSender(dd.PID(), &distributeddata.Update[items]{
						Key: cart, At: local, Modify: addTo("a")}, to)
					system.Root.RequestWithCustomSender(dd.PID(), &distributeddata.Get[items]{
						Key: cart}, to)
					system.Root.RequestWithCustomSender(dd.PID(), "what", to)
					synctest.Wait()
				}
				system.EventStream.Unsubscribe(sub)
				time.Sleep(time.Second)
				v, err := cart.Update(context.Background(), dd, addTo("b"),
					distributeddata.Majority)
				require.NoError(t, err)
				require.Equal(t, 2, v.Len())
				require.Equal(t, was, dd.Status().Replica)
				require.Positive(t, dd.Status().Faults)
			})
		})
	}
}

// After Close nothing is shown, and every call and message is answered.
func TestClose_AfterItEverythingIsClosed(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		ctx := context.Background()
		_, err := cart.Update(ctx, dd, addTo("a"), local)
		require.NoError(t, err)
		require.NoError(t, dd.Close(ctx))
		require.NoError(t, dd.Close(ctx), "twice")
		for i, err := range []error{
			resultOf2(cart.Get(ctx, dd)), resultOf2(cart.Get(ctx, dd, distributeddata.Majority)),
			resultOf2(cart.Of(dd.Snapshot())),
			resultOf2(cart.Update(ctx, dd, addTo("b"),
				local)), cart.Delete(ctx, dd, local), dd.Ready(ctx),
			distributeddata.Atomically(ctx, dd, func(*distributeddata.Tx) error { return nil },
				local),
		} {
			require.ErrorIs(t, err, distributeddata.ErrClosed, i)
		}
		require.Empty(t, slices.Collect(dd.Keys()))
		p := testkit.NewProbe(t, system)
		p.Request(dd.PID(), &distributeddata.Get[items]{Key: cart})
		require.ErrorIs(t, resultOf(testkit.Expect[*distributeddata.GetResponse[items]](p)),
			distributeddata.ErrClosed)
		p.Request(dd.PID(), &distributeddata.Update[items]{Key: cart,
			At: local, Modify: addTo("b")})
		require.ErrorIs(t, resultOf(testkit.Expect[*distributeddata.UpdateResponse[items]](p)),
			distributeddata.ErrClosed)
		p.Request(dd.PID(), &distributeddata.Delete[items]{Key: cart, At: local})
		require.ErrorIs(t, resultOf(testkit.Expect[*distributeddata.DeleteResponse[items]](p)),
			distributeddata.ErrClosed)
		p.Request(dd.PID(), &distributeddata.Transaction{Modify: func(*distributeddata.Tx) error {
			return nil
		}, At: local})
		require.ErrorIs(t, resultOf(testkit.Expect[*distributeddata.TransactionResponse](p)),
			distributeddata.ErrClosed)
		p.Request(dd.PID(), "what")
		testkit.Expect[*actor.DeadLetterResponse](p)
	})
}

// Close returns even if others in view cannot be reached, also without a deadline.
func TestClose_EndsWithoutADeadlineAndWithoutTheOthers(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1), addresses(c, 2))
		require.NoError(t, c.add(0, "a"))
		begin := time.Now()
		require.ErrorIs(t, c.at(0).Close(context.Background()), distributeddata.ErrQuorum)
		require.LessOrEqual(t, time.Since(begin), 6*time.Second)
	})
}
