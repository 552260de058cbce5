package coordination

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// grantAt returns a grant whose session runs no loop: only the clock can end the grant.
func grantAt(c Clock, sent Reading) *Grant {
	l := &Lease{s: &Session{clock: c}, name: "lease"}
	return newGrant(l, 1, core.Validity{Sent: core.Reading(sent), StopAfter: 20 * time.Second,
		ValidFor: 25 * time.Second})
}

// TestGrant_CheckAsksNoTimer tests K5: Check reports the expiry although no timer has run and no
// loop exists.
// Seen in actor-ts 937, and in the source of akka, pekko and akka.net.
func TestGrant_CheckAsksNoTimer(t *testing.T) {
	c := newClock()
	for _, past := range []struct {
		by   time.Duration
		left time.Duration
		ok   bool
	}{{0, 25 * time.Second, true}, {19 * time.Second, 6 * time.Second, true},
		{20 * time.Second, 5 * time.Second, false},
		{26 * time.Second, 0, false}} {
		sent := c.Read()
		sent.Mono -= past.by
		g := grantAt(c, sent)
		err := g.Check()
		if (err == nil) != past.ok || !past.ok && !errors.Is(err, ErrLost) {
			t.Errorf("after %v: %v", past.by, err)
		}
		if d := past.left - g.Remaining(); d < 0 || d > 5*time.Second {
			t.Errorf("after %v: %v remain, want %v", past.by, g.Remaining(), past.left)
		}
	}
}

// TestGrant_WallAndBootClock tests G2 and G4 for the holder: a clock that ran ahead ends the grant,
// and a clock that went back does not prolong it.
func TestGrant_WallAndBootClock(t *testing.T) {
	c := newClock()
	for name, test := range map[string]struct {
		change func(*Reading)
		ok     bool
	}{
		"wall jumped ahead": {func(r *Reading) { r.Wall -= time.Hour }, false},
		"wall jumped back":  {func(r *Reading) { r.Wall += time.Hour }, true},
		"machine suspended": {func(r *Reading) { r.Boot -= time.Hour }, c.boot == nil},
		"back, and time over": {func(r *Reading) {
			r.Wall += time.Hour
			r.Mono -= time.Minute
		}, false},
	} {
		sent := c.Read()
		test.change(&sent)
		if err := grantAt(c, sent).Check(); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkGrantCheck compares the cost of a Check with the cost if each Check asks the kernel for
// the boot clock.
func BenchmarkGrantCheck(b *testing.B) {
	for _, asked := range []bool{false, true} {
		b.Run(fmt.Sprintf("kernel-asked=%t", asked), func(b *testing.B) {
			c := newClock()
			g := grantAt(c, c.Read())
			b.ReportAllocs()
			for b.Loop() {
				if asked && c.boot != nil {
					c.boot.known.serial.Store(0)
				}
				if g.Check() != nil {
					b.Fatal("over")
				}
			}
		})
	}
}
