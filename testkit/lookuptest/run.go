package lookuptest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/testkit"
)

// Config describes an identity lookup.
type Config struct {
	// New creates the lookup of a member. Required.
	New func(m *testkit.Member) (cluster.IdentityLookup, error)
	// Check returns an error if an activation must have no effect any more, such as that of a lost
	// lease; ctx is the context of the activation. Default: always nil.
	Check func(ctx actor.Context) error
	// Within bounds the time after a fault until every grain answers. Default 30s.
	Within time.Duration
	// Except lists rules that are skipped, each with a reason that the test prints.
	Except map[string]string
}

// The kinds of the suite.
const (
	one     = "lookuptest"
	another = "lookuptest2"
)

// Run checks a lookup. Each rule is a subtest.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.New == nil {
		t.Fatal("lookuptest: Config.New is nil")
	}
	if cfg.Check == nil {
		cfg.Check = func(actor.Context) error { return nil }
	}
	if cfg.Within == 0 {
		cfg.Within = 30 * time.Second
	}
	for _, r := range []struct {
		rule, name string
		check      func(*world)
	}{
		{"L1", "one activation", (*world).oneActivation},
		{"L2", "names", (*world).names},
		{"L3", "ended", (*world).ended},
		{"L4", "join and leave", (*world).joinAndLeave},
		{"L5", "crash", (*world).crash},
		{"L5", "freeze", (*world).freeze},
		{"L6", "partition", (*world).partition},
		{"L7", "healed", (*world).healed},
		{"L8", "unknown kind", (*world).unknown},
	} {
		t.Run(r.rule+" "+r.name, func(t *testing.T) {
			if why := cfg.Except[r.rule]; why != "" {
				t.Skipf("%s is excepted: %s", r.rule, why)
			}
			play(t, cfg, r.rule, r.check)
		})
	}
}

// world is a cluster whose members run the grains of the suite.
type world struct {
	*testkit.Cluster
	t        *testing.T
	cfg      Config
	rule     string
	book     *book
	clusters *testkit.PerMember[*cluster.Cluster]
}

// members is the number of members at the start.
const members = 3

func play(t *testing.T, cfg Config, rule string, check func(*world)) {
	t.Helper()
	testkit.Run(t, 0, func(t *testing.T, c *testkit.Cluster) {
		w := &world{Cluster: c, t: t, cfg: cfg, rule: rule,
			book: &book{grains: map[string]*page{}}}
		w.clusters = testkit.Each(c, w.member)
		for range members {
			c.Join()
		}
		c.Ready()
		check(w)
	}, testkit.Provider(500*time.Millisecond, 3*time.Second), testkit.Rejoin(time.Second),
		testkit.Leases(coordination.Config{TTL: 8 * time.Second}))
}

// member makes a member run the grains of the suite.
func (w *world) member(m *testkit.Member) (*cluster.Cluster, error) {
	lookup, err := w.cfg.New(m)
	if err != nil {
		return nil, err
	}
	kind := func(name string) *cluster.Kind {
		return cluster.NewKind(name, actor.PropsFromProducer(func() actor.Actor {
			return &grain{cfg: w.cfg, book: w.book}
		}))
	}
	return m.Grains(lookup, kind(one), kind(another)), nil
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("[%s] "+format, append([]any{w.rule}, args...)...)
}

// all calls do for each of n grains at the same time.
func all(n int, do func(identity string)) {
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { do(fmt.Sprint("grain ", i)) })
	}
	calls.Wait()
}

func (w *world) oneActivation() {
	all(50, func(identity string) {
		var answers [members]string
		var calls sync.WaitGroup
		for i := range members {
			calls.Go(func() {
				var err error
				answers[i], err = within(w.cfg.Within, w.clusters.At(i), one, identity)
				if err != nil {
					w.fail("%s does not answer member %d: %v", identity, i, err)
				}
			})
		}
		calls.Wait()
		for _, a := range answers {
			if a != answers[0] {
				w.fail("members find different activations: %q", answers)
			}
		}
	})
}

func (w *world) names() {
	seen := map[string]bool{}
	for _, identity := range []string{"a", "a/b", "b/a", "a%2Fb", "%", "a b", "ä€😀", "a\tb", "a\nb",
		"\x00", "a$1", "a:1", "\u0085"} {
		for _, kind := range []string{one, another} {
			answer, err := within(w.cfg.Within, w.clusters.At(0), kind, identity)
			if err != nil {
				w.fail("grain %q of %s does not answer: %v", identity, kind, err)
				continue
			}
			again, err := within(w.cfg.Within, w.clusters.At(1), kind, identity)
			if seen[answer] || again != answer {
				w.fail("grain %q of %s is not one of its own: %q, then %q, %v", identity, kind,
					answer, again, err)
			}
			seen[answer] = true
		}
	}
}

func (w *world) ended() {
	all(20, func(identity string) {
		for i := range members {
			if _, err := within(w.cfg.Within, w.clusters.At(i), one, identity); err != nil {
				w.fail("%s does not answer: %v", identity, err)
			}
		}
		for i := range members {
			last, err := ask(w.clusters.At(i), one, identity, "stop")
			if err != nil {
				w.fail("%s does not answer before it stops: %v", identity, err)
			}
			for k := range members {
				next, err := ask(w.clusters.At((i+k)%members), one, identity, "who?")
				if err != nil || next == last {
					w.fail("%s has ended, and a request finds %q, %v", identity, next, err)
				}
			}
		}
	})
	w.once()
}

func (w *world) once() {
	if n := w.book.doubles(); n > 0 {
		w.fail("%d messages were handled by an activation after another one", n)
	}
}

// busy calls grains from members until stop is called, which returns how many calls there were and
// the last errors.
func (w *world) busy(grains int, from ...int) (stop func() (calls int, errs []error)) {
	var callers sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	calls, done := 0, make(chan struct{})
	for _, i := range from {
		c := w.clusters.At(i)
		for g := range grains {
			callers.Go(func() {
				for {
					_, err := ask(c, one, fmt.Sprint("grain ", g), "who?")
					mu.Lock()
					calls++
					if err != nil {
						errs = append(errs[max(0, len(errs)-100):], err)
					}
					mu.Unlock()
					select {
					case <-done:
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
	return func() (int, []error) {
		close(done)
		callers.Wait()
		return calls, errs
	}
}

func (w *world) joinAndLeave() {
	w.Advance(10 * time.Second)
	stop := w.busy(30, 0, 1)
	w.Advance(2 * time.Second)
	for range 2 {
		w.Join()
		w.Advance(25 * time.Second)
	}
	for i := range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if err := w.Member(members + i).Leave(ctx); err != nil {
			w.fail("a member does not leave: %v", err)
		}
		cancel()
		w.Advance(5 * time.Second)
	}
	if calls, errs := stop(); len(errs) > 0 {
		w.fail("%d and more of %d requests failed, the last with %v", len(errs), calls,
			errs[len(errs)-1])
	}
	w.once()
}

func (w *world) crash() {
	all(30, func(identity string) {
		_, _ = within(w.cfg.Within, w.clusters.At(0), one, identity)
	})
	w.Member(members - 1).Crash()
	all(30, func(identity string) {
		if _, err := within(w.cfg.Within, w.clusters.At(0), one, identity); err != nil {
			w.fail("%s does not answer within %v of a crash: %v", identity, w.cfg.Within, err)
		}
	})
	w.once()
}

// freeze is a crash of a process that wakes up later, after other members have joined and left.
func (w *world) freeze() {
	w.Advance(10 * time.Second)
	stop := w.busy(30, 0, 1)
	w.Member(members - 1).Restart()
	w.Advance(15 * time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := w.Member(members - 1).Leave(ctx); err != nil {
		w.fail("a member does not leave: %v", err)
	}
	w.Join()
	w.Advance(25 * time.Second)
	w.Member(members).Freeze()
	all(100, func(identity string) {
		if _, err := within(w.cfg.Within, w.clusters.At(0), one, identity); err != nil {
			w.fail("%s does not answer within %v of a freeze: %v", identity, w.cfg.Within, err)
		}
	})
	w.Advance(20 * time.Second)
	w.Member(members).Thaw()
	w.Advance(20 * time.Second)
	_, _ = stop()
	w.once()
}

func (w *world) partition() {
	w.cut()
	w.once()
}

// cut lets both sides of a partition call, while it lasts and after it.
func (w *world) cut() {
	w.Advance(10 * time.Second)
	stop := w.busy(30, 0, 1, 2)
	w.Advance(3 * time.Second)
	w.Partition([]int{0, 1}, []int{2})
	w.Advance(30 * time.Second)
	w.Heal()
	w.Advance(20 * time.Second)
	_, _ = stop()
}

func (w *world) healed() {
	w.cut()
	all(30, func(identity string) {
		var first string
		for i := range members {
			answer, err := within(w.cfg.Within, w.clusters.At(i), one, identity)
			switch {
			case err != nil:
				w.fail("%s does not answer member %d: %v", identity, i, err)
			case first == "":
				first = answer
			case answer != first:
				w.fail("members find different activations after a partition: %q and %q", first,
					answer)
			}
		}
	})
}

func (w *world) unknown() {
	begun := time.Now()
	if pid := w.clusters.At(0).Get("a", "no such kind"); pid != nil {
		w.fail("a grain of an unknown kind is found: %v", pid)
	}
	if took := time.Since(begun); took > w.cfg.Within {
		w.fail("a kind that no member has was looked for for %v", took)
	}
}

// Doubles returns how many messages were handled by an activation after another one in the
// partition of L6, for a comparison of lookups.
func Doubles(t *testing.T, cfg Config) (n int) {
	t.Helper()
	if cfg.Check == nil {
		cfg.Check = func(actor.Context) error { return nil }
	}
	play(t, cfg, "L6", func(w *world) {
		w.cut()
		n = w.book.doubles()
	})
	return n
}
