package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/singleton/internal/core"
)

// FuzzMachine plays any events, with any contents, for a machine and a route. Nothing panics, an
// instance starts only under a token that was granted and while no other one exists, and a wake
// that has come is not requested again.
func FuzzMachine(f *testing.F) {
	f.Add([]byte("\x00\x03\x00\x04\x01\x01\x06\x01\x0a\x01\x09\x01\x02\x03\x0b\x05"))
	f.Add([]byte("\x00\x07\x10\x00\x0d\x42\x0d\xff\x02\x00\x10\x11\x0e\x01\x01\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		now := time.Unix(1000, 0)
		m := core.New(core.Config{HandOver: time.Second, Hurry: time.Second,
			BackOff:    time.Millisecond,
			MaxBackOff: time.Second, Tries: 1 + len(data)%3, MinMembers: len(data) % 2,
			Settle:       time.Second,
			AnnouncedFor: time.Second, Repeat: 100 * time.Millisecond, Return: time.Second,
			MaxReturn: time.Minute,
			Grace:     time.Second})
		r := core.NewRoute(time.Second)
		var alive uint64
		granted := map[uint64]bool{}
		for ; len(data) >= 2; data = data[2:] {
			ev := anyEvent(data[0], data[1])
			now = now.Add(time.Duration(data[0]>>5) * 150 * time.Millisecond)
			if g, ok := ev.(core.Gone); ok && g.Run == alive {
				alive = 0
			}
			if h, ok := ev.(core.Held); ok {
				granted[h.Token] = true
			}
			for _, e := range m.Step(now, ev) {
				if s, ok := e.(core.Start); ok {
					if alive != 0 || !granted[s.Token] {
						t.Fatalf("%+v while %d lives, after grants %v", s, alive, granted)
					}
					alive = s.Run
				}
			}
			_ = r.Step(now, ev)
			m.Step(now, core.Wake{})
			if at := m.NextWake(); !at.IsZero() && !at.After(now) {
				t.Fatalf("%v wants a wake at once, after %T", m.State(), ev)
			}
		}
	})
}

// anyEvent returns an event whose contents depend on b.
func anyEvent(kind, b byte) core.Event {
	member := func(b byte) core.Member {
		return core.Member{ID: fmt.Sprint(b % 4), Incarnation: uint64(b>>2) % 2}
	}
	n := uint64(b % 8)
	span := time.Duration(int8(b)) * time.Hour // also negative
	switch kind % 19 {
	case 0, 1, 2:
		v := core.View{Self: member(b), Removed: b == 255}
		for i := range b >> 5 {
			v.Hosts = append(v.Hosts, member(b+i))
		}
		if b&16 != 0 {
			for i := range b >> 5 {
				v.Preferred = append(v.Preferred, member(b-i))
			}
		}
		return v
	case 3:
		return core.Leaving{Member: member(b)}
	case 4, 5:
		return core.Held{Attempt: n, Token: uint64(b)}
	case 6:
		return core.Failed{Attempt: n, Final: b&16 != 0, Taken: b&32 != 0}
	case 7:
		return core.Lost{Token: uint64(b), Silent: b&16 != 0}
	case 8, 9:
		return core.Gone{Run: n}
	case 10:
		return core.Broken{Run: n}
	case 11:
		return core.Released{Token: uint64(b), Certain: b&1 != 0}
	case 12:
		return core.Free{}
	case 13, 14:
		return core.Announcement{From: member(b), Seq: uint64(b >> 3), For: span,
			Failing: b&16 != 0,
			Claims:  b&32 != 0}
	case 15:
		return core.Probed{Probe: n, Reached: b&16 != 0, Taken: b&32 != 0}
	case 16:
		return core.Gate{Open: b&1 != 0}
	case 17:
		return core.Host{From: member(b), Round: n, Token: uint64(b)}
	}
	return core.Paused{From: member(b), Token: uint64(b), Lost: b&16 != 0}
}
