package testkit_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/testkit"
)

var errTooEarly = errors.New("too early")

func TestExpectDeadLetter(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		nobody := system.NewLocalPID("nobody")
		got := testkit.ExpectDeadLetter[*add](t, system, func() {
			system.Root.Send(nobody, "another")
			system.Root.Send(nobody, &add{3})
		})
		require.Equal(t, 3, got.n)
	})
	testkit.Bubble(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			system := testkit.NewSystem(tb)
			testkit.ExpectDeadLetter[*add](tb, system, func() {
				system.Root.Send(system.NewLocalPID("nobody"), "another")
			})
		}), "expected a dead letter *testkit_test.add within 3s, got none", `"another" from nobody`)
	})
}

func TestExpectNoDeadLetter(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		p := testkit.NewProbe(t, system)
		testkit.ExpectNoDeadLetter(t, system, func() { p.Send(p.PID(), &add{3}) })
	})
	testkit.Bubble(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			system := testkit.NewSystem(tb)
			testkit.ExpectNoDeadLetter(tb, system, func() {
				go system.Root.Send(system.NewLocalPID("gone"), &add{3})
			})
		}), "expected no dead letter, got:\n  *testkit_test.add{n:3} to nonhost/gone from nobody")
	})
}

func TestExpectLog(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		log := system.Logger().With(slog.String("shop", "north")).WithGroup("order")
		testkit.ExpectLog(t, system, testkit.Log{
			Level: slog.LevelWarn, Message: "late", Attrs: map[string]any{"shop": "north",
				"order.id": 7}, Times: 2,
		}, func() {
			log.Info("order is late", "id", 7)
			log.Warn("order is late", "id", 8)
			go func() {
				log.Warn("order is late", "id", 7)
				log.Warn("order is late", slog.Int("id", 7),
					slog.Group("by", slog.Int("minutes", 3)))
			}()
		})
		testkit.ExpectLog(t, system, testkit.Log{Attrs: map[string]any{"order.by.minutes": 4}},
			func() {
				log.Info("x", slog.Group("by", slog.Int("minutes", 4)))
			})
		testkit.ExpectLog(t, system, testkit.Log{Level: slog.LevelError, Times: testkit.Never},
			func() {
				log.Warn("only")
			})
	})
}

func TestExpectLog_Fails(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		says(t, failing(t, func(tb testing.TB) {
			system := testkit.NewSystem(tb)
			system.Logger().Error("before")
			testkit.ExpectLog(tb, system, testkit.Log{Level: slog.LevelError, Message: "fail",
				Attrs: map[string]any{"k": 1}},
				func() { system.Logger().Error("failed", "k", 2) })
		}), `expected log ERROR "fail" k=1 at least once, got 0`,
			"Logged, in order:\n  ERROR failed k=2")
		says(t, failing(t, func(tb testing.TB) {
			system := testkit.NewSystem(tb)
			testkit.ExpectLog(tb, system, testkit.Log{Times: 1}, func() {
				system.Logger().Info("a")
				system.Logger().Info("b")
			})
		}), `"" 1 times, got 2`)
		says(t, failing(t, func(tb testing.TB) {
			system := testkit.NewSystem(tb)
			testkit.ExpectLog(tb, system, testkit.Log{Times: testkit.Never}, func() {
				system.Logger().Debug("a")
			})
		}), `never, got 1`, "DEBUG a")
		says(t, failing(t, func(tb testing.TB) {
			testkit.ExpectLog(tb, testkit.NewSystem(tb), testkit.Log{}, func() {})
		}), "Nothing was logged.")
	})
	says(t, failing(t, func(tb testing.TB) {
		system := actor.NewActorSystem(
			actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
				return slog.New(slog.DiscardHandler)
			}))
		defer system.Shutdown()
		testkit.ExpectLog(tb, system, testkit.Log{}, func() {})
	}), "is not kept: make it with testkit.NewSystem or testkit.WithLogs")
}

func TestNewSystem_PrintsWarningsOnFailure(t *testing.T) {
	r := &recorder{TB: t}
	system := testkit.NewSystem(r)
	system.Logger().Info("fine")
	system.Logger().Warn("not so fine", "why", "rain")
	r.Errorf("failed")
	for _, f := range r.cleanups {
		f()
	}
	require.Len(t, r.logs, 1)
	require.Contains(t, r.logs[0], "WARN  not so fine why=rain")
}

// The report of a failed test names the actors that panicked.
func TestNewSystem_ReportsPanics(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		r := &recorder{TB: t}
		system := testkit.NewSystem(r)
		pid, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
			if text, ok := ctx.Message().(string); ok {
				_ = strings.Repeat(text, -1)
			}
		}), "cart")
		require.NoError(t, err)
		system.Root.Send(pid, "milk")
		time.Sleep(time.Second)
		r.Errorf("failed")
		for _, f := range r.cleanups {
			f()
		}
		require.Len(t, r.logs, 2)
		require.Regexp(t, `: actor nonhost/cart panicked: strings: negative Repeat count; `+
			`in testkit_test\.TestNewSystem_ReportsPanics\S* at kit_test\.go:\d+$`, r.logs[0])
		require.Contains(t, r.logs[1], "actor nonhost/cart: its supervisor chose the RestartDirective")
	})
}

func TestRoundTrip(t *testing.T) {
	got := testkit.RoundTrip(t, wrapperspb.String("über"))
	require.Equal(t, "über", got.Value)
	require.Equal(t, &order{"milk"}, testkit.RoundTrip(t, &order{"milk"}))

	for name, c := range map[string]struct {
		try  func(t testing.TB)
		says string
	}{
		"no protobuf": {func(t testing.TB) {
			testkit.RoundTrip(t, &add{1})
		}, "*testkit_test.add is not a protobuf message: remoting would drop it"},
		"bad text": {func(t testing.TB) {
			testkit.RoundTrip(t, wrapperspb.String("\xff"))
		}, "does not marshal"},
		"too large": {func(t testing.TB) {
			testkit.RoundTrip(t, wrapperspb.Bytes(make([]byte, 5<<20)))
		}, "is too large to be sent: over 4 MiB"},
		"loses a part": {func(t testing.TB) {
			testkit.RoundTrip(t, &order{"lossy"})
		}, "*testkit_test.order{item:lossy} arrives as *testkit_test.order{item:}"},
		"refuses": {func(t testing.TB) {
			testkit.RoundTrip(t, &order{"refused"})
		}, "does not serialise: refused"},
	} {
		t.Run(name, func(t *testing.T) { says(t, failing(t, c.try), c.says) })
	}
}

func TestTenure(t *testing.T) {
	inBoth(t, func(t *testing.T) {
		for _, token := range []coordination.Token{1, 42} {
			tenure, end := testkit.Tenure(t, token)
			require.Equal(t, token, tenure.Token())
			require.NoError(t, tenure.Check())
			same, ok := coordination.FromContext(tenure.Context())
			require.True(t, ok)
			require.Equal(t, token, same.Token())
			end()
			require.ErrorIs(t, tenure.Check(), coordination.ErrLost)
			require.ErrorIs(t, context.Cause(tenure.Context()), coordination.ErrLost)
			end()
		}
	})
	says(t, failing(t, func(tb testing.TB) { testkit.Tenure(tb, 0) }), "tenure with token 0")
}

func TestFailures_AreOneLinePerMessageAndShort(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		got := failing(t, func(tb testing.TB) {
			p := testkit.NewProbe(tb, testkit.NewSystem(tb))
			for range 150 {
				p.Send(p.PID(), strings.Repeat("long\n", 1000))
			}
			time.Sleep(time.Second)
			testkit.Expect[int](p)
		})
		says(t, got, "… 50 earlier ones", " 51 ", "150 ")
		require.Less(t, len(got), 50_000)
		require.Less(t, strings.Count(got, "\n"), 110)
	})
}
