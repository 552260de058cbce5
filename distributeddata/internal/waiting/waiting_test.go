package waiting

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/scenarios"
)

var epoch = time.Unix(1_700_000_000, 0)

// TestGolden plays the scenarios of testdata. Their commands are:
//
//	at DURATION                 lets the time come
//	call ID LEVEL TASK [N] TIME a call that waits until TIME, for event N; a "write" is not asked for
//	pop ID N                    what the group ID waits for has come, up to event N
//	stir                        something has arrived
//	settle                      the end of a step
func TestGolden(t *testing.T) {
	scenarios.Play(t, "testdata/*.txt", func(_ *testing.T, _, text string) string {
		return play(text)
	})
}

func play(text string) string {
	var out strings.Builder
	now, c := epoch, New[string, string](time.Second)
	span := func(s string) time.Time {
		d, err := time.ParseDuration(s)
		if err != nil {
			panic(err)
		}
		return epoch.Add(d)
	}
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	line := func(format string, args ...any) { fmt.Fprintf(&out, "    "+format+"\n", args...) }
	for cmd := range strings.Lines(text) {
		if strings.HasPrefix(cmd, "    ") {
			continue // a line of the recorded output
		}
		out.WriteString(cmd)
		f := strings.Fields(cmd)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		switch f[0] {
		case "at":
			now = span(f[1])
		case "call":
			w := Call{ID: number(f[1]), Deadline: span(f[len(f)-1])}
			if len(f) == 6 {
				w.N = number(f[4])
			}
			g := c.Join(f[2], func(task string) bool { return task == f[3] })
			switch {
			case g != nil:
				line("joins group %d", g.ID())
			case f[3] == "write":
				g = c.OpenSilent(f[2], f[3])
			default:
				g = c.Open(now, f[2], f[3])
			}
			c.Add(g, w)
			if c.Begun(now, g) {
				line("asks for group %d", g.ID())
			}
		case "pop":
			for g := range c.All() {
				if g.ID() != number(f[1]) {
					continue
				}
				for w, ok := c.Pop(g, number(f[2])); ok; w, ok = c.Pop(g, number(f[2])) {
					line("call %d is done", w.ID)
				}
			}
		case "stir":
			c.Stir()
		case "settle":
			if !c.Due(now) {
				line("nothing is due before %v", c.Wake(now).Sub(epoch))
				continue
			}
			for g, w, ok := c.Expired(now); ok; g, w, ok = c.Expired(now) {
				line("call %d of group %d is late", w.ID, g.ID())
			}
			for g := range c.Rest(now) {
				line("asks for group %d", g.ID())
			}
			line("%d calls in %d groups", c.Live(), c.Len())
		default:
			panic("unknown command " + f[0])
		}
	}
	return out.String()
}

// TestCalls_AgainstDefinition plays random calls and compares with a list: every call ends once,
// when its event has come or it is late; no call joins a group that has been asked for; and no more
// groups of a level have been asked for at a time than may be.
func TestCalls_AgainstDefinition(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		now, c := epoch, New[int, string](time.Second)
		waits := map[uint64]Call{}
		ends := func(w Call, want func(Call) bool) {
			require.Equal(t, waits[w.ID], w, "seed %d", seed)
			require.True(t, want(w), "seed %d: call %d", seed, w.ID)
			delete(waits, w.ID)
		}
		for id := uint64(1); id < 400; id++ {
			now = now.Add(time.Duration(r.IntN(300)) * time.Millisecond)
			level, task := r.IntN(2), []string{"read", "write"}[r.IntN(2)]
			w := Call{ID: id, Deadline: now.Add(time.Duration(r.IntN(9000)) * time.Millisecond)}
			g := c.Join(level, func(s string) bool { return s == task })
			switch {
			case g != nil:
				require.False(t, g.Asked())
				require.Equal(t, level, g.Level())
			case task == "write":
				g = c.OpenSilent(level, task)
			default:
				g = c.Open(now, level, task)
			}
			if task == "write" {
				w.N = id
			}
			waits[id] = w
			c.Add(g, w)
			c.Begun(now, g)
			if r.IntN(3) == 0 {
				c.Stir()
			}
			first := now.Add(time.Hour)
			for _, w := range waits {
				if w.Deadline.Before(first) {
					first = w.Deadline
				}
			}
			due := c.Due(now)
			require.True(t, due || now.Before(first), "seed %d: a call is late", seed)
			if !due {
				continue
			}
			for g := range c.All() {
				upTo := uint64(r.IntN(int(id) + 1))
				for w, ok := c.Pop(g, upTo); ok; w, ok = c.Pop(g, upTo) {
					ends(w, func(w Call) bool { return w.N <= upTo })
				}
			}
			for _, w, ok := c.Expired(now); ok; _, w, ok = c.Expired(now) {
				ends(w, func(w Call) bool { return !now.Before(w.Deadline) })
			}
			for range c.Rest(now) {
			}
			asked := map[int]int{}
			for g := range c.All() {
				require.Positive(t, g.Live())
				if g.Asked() {
					asked[g.Level()]++
				}
			}
			require.LessOrEqual(t, max(asked[0], asked[1]), Rounds)
			require.Equal(t, len(waits), c.Live())
			require.ElementsMatch(t, slices.Collect(keys(waits)), c.IDs())
			require.LessOrEqual(t, len(c.deadlines), max(64, 2*c.Live()+1))
		}
		for g := range c.All() {
			for w, ok := c.Pop(g, math.MaxUint64); ok; w, ok = c.Pop(g, math.MaxUint64) {
				ends(w, func(Call) bool { return true })
			}
		}
		require.Empty(t, waits)
	}
}

func keys(m map[uint64]Call) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for id := range m {
			if !yield(id) {
				return
			}
		}
	}
}

// A group without a call goes on until what it was begun for has come to its end.
func TestKeep_UntilItIsSettled(t *testing.T) {
	c := New[string, string](time.Second)
	g := c.Keep(7, "majority", "removal")
	c.Ask(epoch, g)
	for range c.Rest(epoch) {
		t.Fatal("it has been asked for")
	}
	require.Equal(t, 1, c.Len())
	asked := 0
	for range c.Rest(epoch.Add(time.Second)) {
		asked++
	}
	require.Equal(t, 1, asked)
	g.Settle(false)
	require.True(t, g.Kept())
	g.Settle(true)
	for range c.Rest(epoch.Add(time.Second)) {
		t.Fatal("it has ended")
	}
	require.Zero(t, c.Len())
}
