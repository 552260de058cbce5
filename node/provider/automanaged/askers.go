package automanaged

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// A request names the address of the member that asks. If that member is not listed, its host is
// asked soon, since its process may just have started. If it has asked for a while, the answer says
// so, and each of the two logs what to correct.
//
// A request also names the member id of the process that asks: it shows that a listed member runs,
// even if its answers come too late. One that came before a request that has no answer does not.
const (
	fromHeader  = "Concord-From"
	idHeader    = "Concord-Member"
	listsHeader = "Concord-Lists"
	listsNot    = "no"

	maxFrom   = maxHost + 10
	maxAskers = 64
)

// askers are the members that ask this one although it does not list them.
type askers struct {
	self     string        // the address of this member
	patience time.Duration // how long that may last
	log      *slog.Logger
	soon     map[string]chan struct{} // by host: it is to be asked soon

	mu struct {
		sync.Mutex
		listed map[string]bool
		signs  map[string]time.Time // by id of a listed member: when it last asked
		waits  map[string]time.Time // by host: since when a request has had no answer
		asked  map[string]asked     // by address; at most maxAskers
		logged map[string]bool      // at most maxAskers
		at     map[string]string    // by host: the address for which it last answered
	}
}

// asked is since when a member asks without a pause, and when it last did.
type asked struct{ since, last time.Time }

func newAskers(c Config, self roster.Self) *askers {
	a := &askers{self: address(self.Host, self.Port), log: self.Log,
		patience: max(10*time.Second, 3*c.DropAfter)}
	a.mu.asked, a.mu.logged = map[string]asked{}, map[string]bool{}
	a.mu.at, a.soon = map[string]string{}, map[string]chan struct{}{}
	a.mu.waits = map[string]time.Time{}
	for _, host := range c.Hosts {
		a.soon[host] = make(chan struct{}, 1)
	}
	return a
}

// answered records the address for which a host has answered.
func (a *askers) answered(host, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.at != nil {
		a.mu.at[host] = address
	}
}

// hurry makes the hosts of an address be asked soon. The caller must hold the mutex.
func (a *askers) hurry(from string) {
	for host, address := range a.mu.at {
		if address == from {
			select {
			case a.soon[host] <- struct{}{}:
			default:
			}
		}
	}
}

// list sets the members that this one lists.
func (a *askers) list(members []roster.Member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.listed = map[string]bool{}
	was := a.mu.signs
	a.mu.signs = map[string]time.Time{}
	for _, m := range members {
		a.mu.signs[m.ID] = was[m.ID]
		at := address(m.Host, m.Port)
		a.mu.listed[at] = true
		delete(a.mu.asked, at)
		delete(a.mu.logged, at)
	}
}

// sign records that a process asks.
func (a *askers) sign(now time.Time, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, listed := a.mu.signs[id]; listed {
		a.mu.signs[id] = now
	}
}

// request records that a request to a host begins, and result whether it has been answered.
func (a *askers) request(now time.Time, host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, waits := a.mu.waits[host]; !waits && a.mu.waits != nil {
		a.mu.waits[host] = now
	}
}

func (a *askers) result(host string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		delete(a.mu.waits, host)
	}
}

// asked returns when the member at a host last asked, if that was while a request to the host had
// no answer; otherwise zero.
func (a *askers) asked(host, id string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, waits := a.mu.waits[host]
	if at := a.mu.signs[id]; waits && at.After(since) {
		return at
	}
	return time.Time{}
}

// unlisted reports whether a member has asked for longer than patience and is not listed. It logs
// that once. A member that is not listed is asked soon.
func (a *askers) unlisted(now time.Time, from string) bool {
	host, _, err := net.SplitHostPort(from)
	if err != nil || host == "" || len(from) > maxFrom || from == a.self ||
		strings.ContainsFunc(from, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.listed[from] {
		return false
	}
	a.hurry(from)
	if len(a.mu.asked) >= maxAskers {
		clear(a.mu.asked)
	}
	is := a.mu.asked[from]
	if now.Sub(is.last) > a.patience/2 {
		is.since = now
	}
	is.last = now
	a.mu.asked[from] = is
	if now.Sub(is.since) < a.patience {
		return false
	}
	if !a.mu.logged[from] && len(a.mu.logged) < maxAskers {
		a.mu.logged[from] = true
		a.log.Warn("a member asks this one, and is not listed here: add its host to the hosts of "+
			"every member, or look why this member cannot reach it", slog.String("member", from))
	}
	return true
}
