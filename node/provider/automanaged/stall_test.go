package automanaged

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// stalling answers at once, except during a stall: then the answer follows the end of the stall, if
// the request still waits.
type stalling struct {
	says       answer
	from, till time.Time
}

func (s *stalling) RoundTrip(r *http.Request) (*http.Response, error) {
	if now := time.Now(); !now.Before(s.from) && now.Before(s.till) {
		select {
		case <-time.After(s.till.Sub(now)):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	body, err := json.Marshal(s.says)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// A member that gets no processor, or collects garbage, for 1.9s is not dropped for 3s of silence,
// at whatever moment it began; one that stays away is.
func TestServe_AStallOfAMemberDropsNobody(t *testing.T) {
	for after := time.Duration(0); after < 2*time.Second; after += 100 * time.Millisecond {
		for stall, want := range map[time.Duration]int{1900 * time.Millisecond: 2, time.Minute: 1} {
			synctest.Test(t, func(t *testing.T) {
				c := Config{Hosts: []string{"b:1"}}.withDefaults()
				host := &stalling{says: answer{ID: "b", Address: "b", Port: 1, ClusterName: "shop"}}
				host.from = time.Now().Add(5*time.Second + after)
				host.till = host.from.Add(stall)
				d := &directory{cfg: c, cluster: "shop", scheme: "http://", client: &http.Client{
					Transport: host}, askers: &askers{}}
				self := roster.Self{Member: roster.Member{ID: "a"}, Cluster: "shop",
					Log: slog.New(slog.DiscardHandler)}
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				least, grown := 2, false
				if err := d.Serve(ctx, self, func(all []roster.Member) {
					grown = grown || len(all) == 2
					if grown {
						least = min(least, len(all))
					}
				}); err != nil {
					t.Error(err)
				}
				if least != want {
					t.Errorf("a stall of %v, %v after the fifth second: %d members, want %d",
						stall, after, least, want)
				}
			})
		}
	}
}

// A member whose answers come too late, because it gets little processor time, is not dropped while
// it asks: that shows that it runs, and that the network carries what it sends. It is dropped when
// it asks no more, or if no answer has come for silences times DropAfter. What it has asked before
// it fell silent does not count.
func TestServe_AMemberThatAsksIsNotSilent(t *testing.T) {
	for _, asks := range []time.Duration{-time.Millisecond, 5 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := Config{Hosts: []string{"b:1"}}.withDefaults()
			host := &stalling{says: answer{ID: "b", Address: "b", Port: 1, ClusterName: "shop"}}
			host.from = time.Now().Add(5 * time.Second)
			host.till = host.from.Add(time.Minute)
			self := roster.Self{Member: roster.Member{ID: "a", Host: "a", Port: 1},
				Cluster: "shop", Log: slog.New(slog.DiscardHandler)}
			d := &directory{cfg: c, cluster: "shop", scheme: "http://", client: &http.Client{
				Transport: host}, askers: newAskers(c, self)}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for at := -time.Millisecond; at <= asks; at += time.Second {
				time.AfterFunc(time.Until(host.from)+at, func() {
					d.askers.sign(time.Now(), "b")
					d.askers.sign(time.Now(), "c")
				})
			}
			var gone time.Duration
			if err := d.Serve(ctx, self, func(all []roster.Member) {
				if gone == 0 && len(all) == 1 && time.Now().After(host.from) {
					gone = time.Since(host.from)
				}
			}); err != nil {
				t.Error(err)
			}
			want := min(asks+c.DropAfter, silences*c.DropAfter)
			if gone < want-2*c.Refresh || gone > want {
				t.Errorf("it asks for %v, and is dropped after %v, want %v", asks, gone, want)
			}
		})
	}
}

// restarting is a host whose process is replaced by another one at the same address.
type restarting struct {
	first      stalling
	gone, back time.Time
	next       answer
}

func (s *restarting) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now()
	switch {
	case now.Before(s.gone):
		return s.first.RoundTrip(r)
	case now.Before(s.back):
		return nil, syscall.ECONNREFUSED
	}
	return (&stalling{says: s.next}).RoundTrip(r)
}

// A process that starts at the address of another one asks the others, and is asked by them soon
// after that, and not only after Refresh.
func TestServe_AProcessThatStartsAgainIsListedSoon(t *testing.T) {
	for after := time.Duration(0); after < time.Second; after += 100 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			c := Config{Hosts: []string{"b:1"}}.withDefaults()
			host := &restarting{first: stalling{says: answer{ID: "b", Address: "b", Port: 1,
				ClusterName: "shop"}}, next: answer{ID: "b2", Address: "b", Port: 1,
				ClusterName: "shop"}}
			host.gone = time.Now().Add(5 * time.Second)
			host.back = host.gone.Add(3*time.Second + after)
			self := roster.Self{Member: roster.Member{ID: "a", Host: "a", Port: 1},
				Cluster: "shop", Log: slog.New(slog.DiscardHandler)}
			d := &directory{cfg: c, cluster: "shop", scheme: "http://", client: &http.Client{
				Transport: host}, askers: newAskers(c, self)}
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			time.AfterFunc(time.Until(host.back), func() { d.askers.unlisted(time.Now(), "b:1") })
			var listed time.Duration
			if err := d.Serve(ctx, self, func(all []roster.Member) {
				if listed == 0 && slices.ContainsFunc(all, func(m roster.Member) bool {
					return m.ID == "b2"
				}) {
					listed = time.Since(host.back)
				}
			}); err != nil {
				t.Error(err)
			}
			if listed > c.Refresh/5 {
				t.Errorf("%v after the first request: listed after %v", after, listed)
			}
		})
	}
}

// slow answers each request so long after it came.
type slow struct {
	says answer
	by   time.Duration
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(s.by):
		return (&stalling{says: s.says}).RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// A process that gets little processor time answers every request late: it was never listed, since
// each request was given up just before its answer.
func TestServe_AMemberThatAlwaysAnswersLateIsListed(t *testing.T) {
	for by, want := range map[time.Duration]int{1400 * time.Millisecond: 2,
		1600 * time.Millisecond: 2, 2900 * time.Millisecond: 2, 10 * time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			c := Config{Hosts: []string{"b:1"}}.withDefaults()
			self := roster.Self{Member: roster.Member{ID: "a", Host: "a", Port: 1},
				Cluster: "shop", Log: slog.New(slog.DiscardHandler)}
			d := &directory{cfg: c, cluster: "shop", scheme: "http://", client: &http.Client{
				Transport: slow{answer{ID: "b", Address: "b", Port: 1, ClusterName: "shop"}, by}},
				askers: newAskers(c, self)}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			most := 0
			if err := d.Serve(ctx, self, func(all []roster.Member) {
				most = max(most, len(all))
			}); err != nil {
				t.Error(err)
			}
			if most != want {
				t.Errorf("answers after %v: %d members, want %d", by, most, want)
			}
		})
	}
}
