package history_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/testkit/history"
)

// step is one line of a hand-written history: "+" begins, "-" ends with the answer, "?" ends
// without one.
type step[I, O any] struct {
	client int
	begin  *I
	end    *O
}

func begin[O, I any](client int, in I) step[I, O] { return step[I, O]{client: client, begin: &in} }
func end[I, O any](client int, out O) step[I, O]  { return step[I, O]{client: client, end: &out} }

// record plays the steps; operations that do not end are unknown.
func record[I, O any](steps ...step[I, O]) []history.Operation[I, O] {
	var r history.Recorder[I, O]
	open := map[int]*history.Pending[I, O]{}
	for _, s := range steps {
		if s.begin != nil {
			open[s.client] = r.Begin(s.client, *s.begin)
		} else {
			open[s.client].End(*s.end)
		}
	}
	return r.Operations()
}

type (
	rop   = history.RegisterOp
	rres  = history.RegisterResult
	rstep = step[rop, rres]
	lop   = history.LeaseOp
	lres  = history.LeaseResult
	lstep = step[lop, lres]
)

func reads(c int) rstep           { return begin[rres](c, rop{Key: "x"}) }
func shows(c int, v string) rstep { return end[rop](c, rres{Value: v}) }
func writes(c int, v string) rstep {
	return begin[rres](c, rop{Key: "x", Kind: history.Write, Value: v})
}
func done(c int) rstep { return end[rop](c, rres{}) }
func swaps(c int, old, v string) rstep {
	return begin[rres](c, rop{Key: "x", Kind: history.Swap, Old: old, Value: v})
}
func swapped(c int, ok bool) rstep { return end[rop](c, rres{Swapped: ok}) }

func TestRegister_Histories(t *testing.T) {
	for name, c := range map[string]struct {
		ok    bool
		steps []rstep
	}{
		"read of the last write": {true, []rstep{writes(0, "1"), done(0), reads(1), shows(1, "1")}},
		"stale read": {false, []rstep{writes(0, "1"), done(0), writes(0, "2"), done(0),
			reads(1), shows(1, "1")}},
		"either of two at once": {true, []rstep{writes(0, "1"), writes(1, "2"), done(0), done(1),
			reads(2), shows(2, "1")}},
		"not both in turn": {false, []rstep{writes(0, "1"), writes(1, "2"), done(0), done(1),
			reads(2), shows(2, "1"),
			reads(2), shows(2, "2")}},
		"an unknown write may show late": {true, []rstep{writes(0, "1"), reads(1), shows(1, ""),
			reads(1), shows(1, "1")}},
		"and may never show": {true, []rstep{writes(0, "1"), reads(1), shows(1, "")}},
		"but does not come and go": {false, []rstep{writes(0, "1"), reads(1), shows(1, "1"),
			reads(1), shows(1, "")}},
		"read of what nobody wrote": {false, []rstep{reads(1), shows(1, "1")}},
		"two swaps of one value": {false, []rstep{swaps(0, "", "1"), swaps(1, "", "2"),
			swapped(0, true), swapped(1, true)}},
		"one of two swaps": {true, []rstep{swaps(0, "", "1"), swaps(1, "", "2"),
			swapped(0, true), swapped(1, false)}},
		"refused for no reason": {false, []rstep{swaps(0, "", "1"), swapped(0, false)}},
		"refused by an unknown one": {true, []rstep{swaps(1, "", "2"), swaps(0, "", "1"),
			swapped(0, false)}},
	} {
		judge(t, name, history.Register(), record(c.steps...), c.ok)
	}
}

func judge[S comparable, I, O any](t *testing.T, name string, m history.Model[S, I, O],
	ops []history.Operation[I, O], want bool) {
	t.Run(name, func(t *testing.T) {
		got, err := history.Linearizable(m, ops, time.Minute)
		if err != nil || got != want {
			t.Errorf("linearizable: %v, %v; want %v\n%s", got, err, want, history.Story(ops))
		}
	})
}

func acquires(c int, who string) lstep {
	return begin[lres](c, lop{Lease: "l", Kind: history.Acquire, Holder: who})
}
func granted(c int, token uint64) lstep { return end[lop](c, lres{Granted: true, Token: token}) }
func refused(c int) lstep               { return end[lop](c, lres{}) }
func releases(c int, token uint64) lstep {
	return begin[lres](c, lop{Lease: "l", Kind: history.Release, Token: token})
}
func expires(token uint64) lstep {
	return begin[lres](100+int(token), lop{Lease: "l", Kind: history.Expire, Token: token})
}
func guarded(c int, token uint64, v string) lstep {
	return begin[lres](c, lop{Lease: "l", Kind: history.GuardedWrite, Token: token, Value: v})
}
func looks(c int) lstep {
	return begin[lres](c, lop{Lease: "l", Kind: history.GuardedRead})
}
func sees(c int, v string) lstep { return end[lop](c, lres{Value: v}) }
func ok(c int) lstep             { return end[lop](c, lres{Granted: true}) }

func TestLease_Histories(t *testing.T) {
	held := []lstep{acquires(0, "a"), granted(0, 1)}
	for name, c := range map[string]struct {
		ok    bool
		steps []lstep
	}{
		"held, refused to others":      {true, []lstep{acquires(1, "b"), refused(1)}},
		"two holders":                  {false, []lstep{acquires(1, "b"), granted(1, 2)}},
		"reentrant":                    {true, []lstep{acquires(0, "a"), granted(0, 1)}},
		"reentrant with another token": {false, []lstep{acquires(0, "a"), granted(0, 2)}},
		"refused to the holder":        {false, []lstep{acquires(0, "a"), refused(0)}},
		"released, then another": {true, []lstep{releases(0, 1), ok(0), acquires(1, "b"),
			granted(1, 2)}},
		"the token comes again": {false, []lstep{releases(0, 1), ok(0), acquires(1, "b"),
			granted(1, 1)}},
		"refused although released": {
			false, []lstep{releases(0, 1), ok(0), acquires(1, "b"), refused(1)}},
		"granted before the release ends": {true, []lstep{releases(0, 1), acquires(1, "b"),
			granted(1, 2), ok(0)}},
		"release unknown, then another": {true, []lstep{releases(0, 1), acquires(1, "b"),
			granted(1, 2)}},
		"release unknown, still held": {
			true, []lstep{releases(0, 1), acquires(1, "b"), refused(1)}},
		"expired, then another": {true, []lstep{expires(1), acquires(1, "b"),
			granted(1, 2)}},
		"expired, not taken yet": {true, []lstep{expires(1), acquires(1, "b"), refused(1),
			acquires(1, "b"), granted(1, 2)}},
		"another before the expiry": {
			false, []lstep{acquires(1, "b"), granted(1, 2), expires(1)}},
		"release of a tenure that is over": {true, []lstep{expires(1), acquires(1, "b"),
			granted(1, 2), releases(0, 1), ok(0),
			acquires(0, "a"), refused(0)}},
		"release of another's tenure": {false, []lstep{expires(1), acquires(1, "b"),
			granted(1, 2), releases(0, 1), ok(0), acquires(0, "a"), granted(0, 3)}},
		"refused release holds": {
			true, []lstep{releases(0, 1), refused(0), acquires(1, "b"), refused(1)}},
		"guarded write": {true, []lstep{guarded(0, 1, "x"), ok(0), looks(1),
			sees(1, "x")}},
		"guarded write is lost": {false, []lstep{guarded(0, 1, "x"), ok(0), looks(1),
			sees(1, "")}},
		"write refused without a newer": {false, []lstep{guarded(0, 1, "x"), refused(0)}},
		"paused holder is refused": {true, []lstep{expires(1), acquires(1, "b"), granted(1, 2),
			guarded(1, 2, "y"), ok(1),
			guarded(0, 1, "x"), refused(0)}},
		"paused holder gets through": {false, []lstep{expires(1), acquires(1, "b"), granted(1, 2),
			guarded(1, 2, "y"), ok(1),
			guarded(0, 1, "x"), ok(0)}},
		"write under a token never given": {false, []lstep{guarded(0, 7, "x"), ok(0)}},
	} {
		judge(t, name, history.Lease(), record(append(held[:2:2], c.steps...)...), c.ok)
	}
}

func TestLease_UnknownAcquire(t *testing.T) {
	for name, c := range map[string]struct {
		ok    bool
		steps []lstep
	}{
		"may hold it": {true, []lstep{acquires(0, "a"), acquires(1, "b"), refused(1)}},
		"may not":     {true, []lstep{acquires(0, "a"), acquires(1, "b"), granted(1, 1)}},
		"may take it back": {true, []lstep{acquires(0, "a"), acquires(1, "b"), refused(1),
			acquires(1, "b"), granted(1, 2)}},
		"nobody holds, refused": {false, []lstep{acquires(1, "b"), refused(1)}},
	} {
		judge(t, name, history.Lease(), record(c.steps...), c.ok)
	}
}

func TestRecorder_DiscardCrashAndLateAnswers(t *testing.T) {
	var r history.Recorder[rop, rres]
	r.Begin(0, rop{Key: "x"}).Discard()
	late := r.Begin(1, rop{Key: "x", Kind: history.Write, Value: "1"})
	r.Crash(1)
	late.End(rres{})
	lost := r.Begin(2, rop{Key: "x"})
	lost.Unknown()
	lost.End(rres{Value: "2"})
	ops := r.Operations()
	if len(ops) != 2 || ops[0].Output.Known || ops[0].Return != history.Never ||
		ops[1].Output.Known {
		t.Errorf("got %+v", ops)
	}
}

func TestRecorder_SettledBoundsWhatIsUnknown(t *testing.T) {
	var r history.Recorder[rop, rres]
	op := r.Begin(0, rop{Key: "x", Kind: history.Write, Value: "1"})
	op.Unknown()
	r.Begin(1, rop{Key: "x"}).End(rres{})
	early := r.Operations()
	op.Settled()
	r.Begin(1, rop{Key: "x"}).End(rres{})
	r.Begin(1, rop{Key: "x"}).End(rres{Value: "1"})
	for name, c := range map[string]struct {
		ops []history.Operation[rop, rres]
		ok  bool
	}{"before": {early, true}, "after": {r.Operations(), false}} {
		judge(t, name, history.Register(), c.ops, c.ok)
	}
}

func TestRecorder_ManyClientsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r history.Recorder[rop, rres]
		var mu sync.Mutex
		value := ""
		var wg sync.WaitGroup
		for c := range 8 {
			wg.Go(func() {
				for i := range 50 {
					time.Sleep(time.Duration(c+1) * time.Millisecond)
					v := string(rune('a'+c)) + string(rune('a'+i%26))
					op := r.Begin(c, rop{Key: "x", Kind: history.Write, Value: v})
					mu.Lock()
					value = v
					mu.Unlock()
					op.End(rres{})
					op = r.Begin(c, rop{Key: "x"})
					mu.Lock()
					v = value
					mu.Unlock()
					op.End(rres{Value: v})
				}
			})
		}
		wg.Wait()
		history.Check(t, history.Register(), r.Operations())
	})
}

// witness is a test that may fail.
type witness struct {
	testing.TB
	failed string
}

func (w *witness) Helper() {}
func (w *witness) Errorf(format string, args ...any) {
	w.failed = strings.TrimSpace(format)
	for _, a := range args {
		if s, ok := a.(string); ok {
			w.failed += "\n" + s
		}
	}
}

func TestCheck_DrawsWhatCannotBeExplained(t *testing.T) {
	w := &witness{TB: t}
	history.Check(w, history.Register(), record(writes(0, "1"), done(0), reads(1), shows(1, "")))
	if !strings.Contains(w.failed, "x := 1") {
		t.Fatalf("no story: %q", w.failed)
	}
	for line := range strings.Lines(w.failed) {
		if path := strings.TrimSpace(line); filepath.Ext(path) == ".html" {
			data, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(data), "read x") {
				t.Errorf("picture %s: %v", path, err)
			}
			_ = os.Remove(path)
			return
		}
	}
	t.Errorf("no picture: %q", w.failed)
}
