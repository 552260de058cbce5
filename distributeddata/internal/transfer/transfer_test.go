package transfer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/scenarios"
)

var (
	epoch  = time.Unix(1_700_000_000, 0)
	timing = Timing{Patience: 4 * time.Second, Grace: 200 * time.Millisecond, Pause: time.Second}
)

const partBytes = 4

// tale is a Stream that says a text, or, once it is narrowed, the symbols that the receiver lacks.
type tale struct {
	text    string
	symbols []uint64
}

func (s *tale) Take(size int) ([]byte, bool) {
	n := min(size, len(s.text))
	part := s.text[:n]
	s.text = s.text[n:]
	return []byte(part), s.text == ""
}

func (s *tale) Sketch() *sketch.Sketch { return sketch.New(slices.Values(s.symbols)) }

func (s *tale) Narrow(theirs, mine []uint64) {
	s.text = fmt.Sprintf("-%d +%d", len(theirs), len(mine))
}

// got is what the receiver keeps: what it had when it asked, and the text so far.
type got struct {
	symbols []uint64
	text    bytes.Buffer
}

// pair is a receiver and a sender, and the messages between them.
type pair struct {
	now   time.Time
	in    In[got]
	out   Out[*tale]
	have  []uint64 // of the receiver
	tale  tale     // what the sender would answer
	n     uint64   // the last number of an answer
	mail  []any
	sent  []any    // all that was ever in mail
	ended []string // the answers that have arrived
}

type request struct {
	id   uint64
	keys int
}

func newPair() *pair {
	return &pair{now: epoch, in: NewIn[got](timing), out: NewOut[*tale](timing, partBytes)}
}

func (p *pair) ask(id uint64) bool {
	if !p.in.Begin(p.now, id, "a", got{symbols: p.have}) {
		return false
	}
	p.post(request{id, len(p.have)})
	return true
}

func (p *pair) post(m any) { p.mail, p.sent = append(p.mail, m), append(p.sent, m) }

func (p *pair) continues(s Sends[*tale]) {
	if s.Compare != nil {
		p.post(*s.Compare)
	}
	for _, m := range s.Parts {
		p.post(m)
	}
}

func (p *pair) deliver(m any) error {
	switch m := m.(type) {
	case request:
		again, fresh := p.out.Asked(p.now, "b", m.id)
		p.continues(again)
		if fresh {
			p.n++
			t := p.tale
			p.continues(p.out.Begin(p.now, "b", p.n, &t, m.keys))
		}
	case More:
		p.continues(p.out.More(p.now, "b", m))
	case Cells:
		s, err := p.out.Cells(p.now, "b", m)
		p.continues(s)
		return err
	case Compare:
		if !p.in.Of("a", m.Request, m.Answer) {
			return nil
		}
		cells, some, err := p.in.Cells(p.now, m, func(g *got) *sketch.Sketch {
			return sketch.New(slices.Values(g.symbols))
		})
		if some {
			p.post(cells)
		}
		return err
	case Part:
		if !p.in.Of("a", m.Request, m.Answer) {
			return nil
		}
		done, more, err := p.in.Part(p.now, m, func(g *got, b []byte) error {
			if bytes.Contains(b, []byte("!")) {
				return fmt.Errorf("bad text %q", b)
			}
			g.text.Write(b)
			return nil
		})
		if done {
			g := p.in.Take()
			p.ended = append(p.ended, g.text.String())
		}
		if more {
			p.post(p.in.More())
		}
		return err
	}
	return nil
}

// tick does what is due.
func (p *pair) tick() {
	p.in.Late(p.now)
	p.out.Late(p.now)
	if due, again := p.in.Nudge(p.now); again {
		p.post(request{p.in.ID(), len(p.have)})
	} else if due {
		p.post(p.in.More())
	}
}

func show(m any) string {
	switch m := m.(type) {
	case request:
		return fmt.Sprintf("request %d", m.id)
	case Part:
		last := ""
		if m.Last {
			last = ", the last"
		}
		return fmt.Sprintf("part %d of answer %d to %d: %q%s", m.Index, m.Answer, m.Request,
			m.Data, last)
	case More:
		return fmt.Sprintf("more of answer %d to %d, from %d on", m.Answer, m.Request, m.Next)
	case Compare:
		return fmt.Sprintf("compare: %d cells from %d on, for answer %d to %d", m.Count, m.From,
			m.Answer, m.Request)
	case Cells:
		return fmt.Sprintf("%d cells from %d on", len(m.Sums), m.From)
	}
	return fmt.Sprint(m)
}

// TestGolden plays the scenarios of testdata, between a receiver and a sender. Their commands are:
//
//	says TEXT          what the sender answers from now on
//	keys N FROM        the receiver has the keys 1 to N, the sender those from FROM to N+FROM-1
//	ask ID             the receiver asks
//	old ID             a request that was made long ago is on its way
//	pass [N]           the next N messages arrive
//	lose [N]           they do not
//	double             the next message arrives, and stays
//	back               the next message moves to the end
//	lost               the sender loses sight of the receiver
//	behind N           the receiver hears of N events
//	seen N             it has seen N events; it asks if it must
//	at DURATION        lets the time come
func TestGolden(t *testing.T) {
	scenarios.Play(t, "testdata/*.txt", func(t *testing.T, _, text string) string {
		return play(t, text)
	})
}

func play(t *testing.T, text string) string {
	var out strings.Builder
	p := newPair()
	seen := func(n int) causal.Vector {
		return causal.MakeVector(causal.Dot{Replica: 1, N: uint64(n)})
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			continue // of the last run
		}
		out.WriteString(line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		number := func(i int) int {
			if i >= len(words) {
				return 1
			}
			n, err := strconv.Atoi(words[i])
			require.NoError(t, err)
			return n
		}
		note := func(format string, args ...any) { fmt.Fprintf(&out, "  "+format+"\n", args...) }
		sent, ended := len(p.sent), len(p.ended)
		take := func() any {
			require.NotEmpty(t, p.mail, line)
			m := p.mail[0]
			p.mail = p.mail[1:]
			return m
		}
		hand := func(m any) {
			if err := p.deliver(m); err != nil {
				note("%v", err)
			}
		}
		switch words[0] {
		case "says":
			p.tale.text = words[1]
		case "keys":
			for i := range number(1) {
				p.have = append(p.have, uint64(i+1)*0x9e3779b97f4a7c15)
				p.tale.symbols = append(p.tale.symbols, uint64(i+number(2))*0x9e3779b97f4a7c15)
			}
		case "ask":
			if !p.ask(uint64(number(1))) {
				note("not now")
			}
		case "old":
			p.post(request{uint64(number(1)), len(p.have)})
		case "pass":
			for range number(1) {
				hand(take())
			}
		case "lose":
			for range number(1) {
				take()
			}
		case "double":
			hand(p.mail[0])
		case "back":
			m := take()
			p.mail = append(p.mail, m)
		case "lost":
			p.out.Lost("b")
		case "behind":
			p.in.Behind(p.now, seen(number(1)), "a")
		case "seen":
			if m, ask := p.in.CatchUp(p.now, seen(number(1))); ask {
				note("ask %s", m)
			}
		case "at":
			d, err := time.ParseDuration(words[1])
			require.NoError(t, err)
			p.now = epoch.Add(d)
			was := p.in.Busy()
			p.tick()
			if was && !p.in.Busy() {
				note("given up")
			}
		default:
			t.Fatalf("unknown command %q", line)
		}
		for _, m := range p.sent[sent:] {
			note("%s", show(m))
		}
		for _, s := range p.ended[ended:] {
			note("answer: %q", s)
		}
	}
	return out.String()
}

// Whatever is lost, doubled or late, and even if the sender loses sight of the receiver and answers
// from another state, what arrives is one whole answer.
func TestTransfer_OneWholeAnswer(t *testing.T) {
	whole := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := newPair()
		told := map[string]bool{}
		says := func() {
			var b strings.Builder
			for i := range 1 + r.IntN(40) {
				fmt.Fprintf(&b, "%d.%d,", i, r.IntN(1000))
			}
			p.tale.text = b.String()
			told[p.tale.text] = true
		}
		says()
		id := uint64(0)
		for step := 0; len(p.ended) == 0 && step < 2000; step++ {
			switch r.IntN(40) {
			case 0:
				p.out.Lost("b")
				says()
			case 1:
				p.now = p.now.Add(timing.Patience / 8)
			case 2:
				p.in.Late(p.now.Add(timing.Patience)) // given up for some other reason
			}
			if id++; !p.ask(id) {
				id--
			}
			p.tick()
			if len(p.mail) == 0 {
				p.now = p.now.Add(timing.Patience / 4)
				continue
			}
			i := r.IntN(min(len(p.mail), 3))
			m := p.mail[i]
			if r.IntN(10) > 0 {
				p.mail = slices.Delete(p.mail, i, i+1)
			}
			if r.IntN(10) > 0 {
				require.NoError(t, p.deliver(m), "seed %d", seed)
			}
		}
		for _, text := range p.ended {
			whole++
			require.True(t, told[text], "seed %d: %q", seed, text)
		}
	}
	require.Greater(t, whole, 475)
}

// A comparison finds the differences of two sets, and says when there are too many.
func TestTransfer_Comparison(t *testing.T) {
	for _, differ := range []int{0, 1, 7, 300, 5000} {
		t.Run(fmt.Sprint(differ), func(t *testing.T) {
			p := newPair()
			r := rand.New(rand.NewPCG(uint64(differ), 2))
			for range 10_000 {
				s := r.Uint64()
				p.have, p.tale.symbols = append(p.have, s), append(p.tale.symbols, s)
			}
			for range differ {
				p.have = append(p.have, r.Uint64())
				p.tale.symbols = append(p.tale.symbols, r.Uint64())
			}
			p.tale.text = "all"
			require.True(t, p.ask(1))
			for len(p.mail) > 0 {
				m := p.mail[0]
				p.mail = p.mail[1:]
				require.NoError(t, p.deliver(m))
			}
			want := fmt.Sprintf("-%d +%d", differ, differ)
			if differ == 5000 {
				want = "all"
			}
			require.Equal(t, []string{want}, p.ended)
		})
	}
}

// What a member sends beyond what it was asked for is an error or ignored, and changes nothing.
func FuzzTransfer(f *testing.F) {
	f.Add(uint64(1), uint64(1), 0, false, []byte("text"), 3, 0, 64)
	f.Add(uint64(1), uint64(1), 100, true, []byte{}, -1, -1, -1)
	f.Fuzz(func(t *testing.T, request, answer uint64, index int, last bool, data []byte, next, from,
		count int) {
		p := newPair()
		p.tale.text = strings.Repeat("long ", 20)
		require.True(t, p.ask(1))
		for range 3 {
			m := p.mail[0]
			p.mail = p.mail[1:]
			require.NoError(t, p.deliver(m))
		}
		sums := make([]uint64, max(0, min(count, 5000)))
		for _, m := range []any{
			Part{Request: request, Answer: answer, Index: index, Last: last, Data: data},
			More{Request: request, Answer: answer, Next: next},
			Compare{Request: request, Answer: answer, From: from, Count: count},
			Cells{Request: request, Answer: answer, From: from, Sums: sums, Checks: sums},
		} {
			_ = p.deliver(m)
			require.LessOrEqual(t, len(p.in.current.ahead), 2*Credit)
		}
		for m := range p.out.Streams() {
			require.LessOrEqual(t, len(m.text), 100)
		}
	})
}
