package automanaged

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/concord-go/concord/node/internal/guard"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

// directory consists of the hosts of the list.
type directory struct {
	cfg     Config
	cluster string
	self    string // the address of this member
	id      string
	guard   *guard.Guard
	scheme  string
	server  *http.Server
	served  <-chan struct{} // closed when the server has stopped
	client  *http.Client
	askers  *askers
	silence atomic.Pointer[string] // the hosts that are no members, and why
}

func open(c Config, self roster.Self) (roster.Directory, error) {
	g := guard.Of(self.System)
	asked := newAskers(c, self)
	server, served, err := listen(c, self, g, asked)
	if err != nil {
		return nil, err
	}
	_, identity := g.TLS()
	d := &directory{cfg: c, cluster: self.Cluster, self: asked.self, id: self.ID, guard: g,
		server: server, served: served, scheme: "http://",
		client: newClient(requestTimeout(c), c.Refresh, identity), askers: asked}
	if identity != nil {
		d.scheme = "https://"
	}
	return d, nil
}

// requestTimeout returns how long a request may take before another one is made.
func requestTimeout(c Config) time.Duration { return max(c.DropAfter/2, c.Refresh) }

// Where implements roster.Directory.
func (d *directory) Where() string {
	return fmt.Sprintf("automanaged with %d hosts", len(d.cfg.Hosts))
}

// Account implements roster.Accountant.
func (d *directory) Account() string {
	if s := d.silence.Load(); s != nil {
		return *s
	}
	return ""
}

// minPause is the pause before a request is repeated, and the least one of this process that does
// not count as silence of the hosts.
const minPause = 50 * time.Millisecond

// news is the result of one request.
type news struct {
	host  string
	says  answer
	err   error
	alone bool // the host does not list this member
}

// Serve implements roster.Directory. It returns only when ctx ends: silent hosts are expected.
func (d *directory) Serve(ctx context.Context, self roster.Self,
	report func([]roster.Member)) error {
	report([]roster.Member{self.Member})
	var asking sync.WaitGroup
	defer asking.Wait()
	heard := make(chan news)
	for _, host := range d.cfg.Hosts {
		asking.Go(func() { d.ask(ctx, host, heard) })
	}
	known := hosts{self: self, dropAfter: d.cfg.DropAfter, by: map[string]*host{},
		asked: d.askers.asked}
	silence := time.NewTicker(d.cfg.Refresh)
	defer silence.Stop()
	for turns := (turns{every: d.cfg.Refresh, last: time.Now()}); ; {
		var n *news
		var due time.Time
		select {
		case got := <-heard:
			n = &got
		case due = <-silence.C:
		case <-ctx.Done():
			return nil
		}
		now := time.Now()
		if late := turns.late(now, due); late > 0 {
			known.resume(late)
		}
		if n == nil && known.expired(now) || n != nil && known.hear(now, *n) {
			members := known.listed(now)
			d.askers.list(members)
			report(members)
		}
		if n != nil {
			if n.err == nil {
				d.askers.answered(n.host, n.says.address())
			}
			account := known.account(now, d.cfg.Hosts)
			d.silence.Store(&account)
		}
	}
}

// turns measures how late this process gets its turns: it gets little processor time, or its
// machine was paused. What it has not read meanwhile is not silence.
type turns struct {
	every time.Duration
	last  time.Time // the last turn
	noted time.Time // the turn that was last found late
}

// late returns how late the turn at now is, beyond what has been counted. due is when the turn was
// due, if it is that of a tick; without one the next turn is due a period after the last one.
func (t *turns) late(now, due time.Time) time.Duration {
	if due.IsZero() {
		due = t.last.Add(t.every)
	}
	t.last = now
	late := now.Sub(due)
	if !due.After(t.noted) { // that time has been counted
		late = now.Sub(t.noted)
	}
	if late <= minPause {
		return 0
	}
	t.noted = now
	return late
}

// ask queries one host repeatedly, and sends the results to heard. A request that has waited in
// vain is repeated at once, since the host may have been slow for a moment.
func (d *directory) ask(ctx context.Context, host string, heard chan<- news) {
	var late lateRequest
	defer late.wait()
	for {
		begun, wait := time.Now(), d.cfg.Refresh
		d.askers.request(begun, host)
		n := d.soon(ctx, host, &late)
		d.askers.result(host, n.err)
		if n.err != nil && time.Since(begun) >= d.cfg.Refresh {
			wait = minPause
		}
		select {
		case heard <- n:
		case <-ctx.Done():
			return
		}
		if !d.rest(ctx, host, begun, wait) {
			return
		}
	}
}

// lateRequest is the request to a host that still waits although its time is over: the answer to
// another one would come as late, if the process gets little processor time.
type lateRequest struct {
	result chan news // nil: there is none
	done   sync.WaitGroup
}

func (l *lateRequest) wait() { l.done.Wait() }

// soon makes a request, and returns its result or that of the late one, whichever answers first. A
// request without an answer becomes the late one, if there is none.
func (d *directory) soon(ctx context.Context, host string, late *lateRequest) news {
	limit := requestTimeout(d.cfg)
	keep := late.result == nil
	most := limit
	if keep {
		most = silences * d.cfg.DropAfter
	}
	own := make(chan news, 1)
	late.done.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		n := news{host: host}
		n.says, n.alone, n.err = d.request(ctx, host)
		own <- n
	})
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		select {
		case n := <-own:
			return n
		case n := <-late.result:
			late.result = nil
			if n.err == nil {
				return n
			}
		case <-over.C:
			if keep {
				late.result = own
				return news{host: host, err: errLate}
			}
			return <-own // its time is over, too
		}
	}
}

// errLate is the result of a request that still waits.
var errLate = errors.New("no answer yet")

// rest waits until a host is to be asked again, and returns false if ctx ends first.
func (d *directory) rest(ctx context.Context, host string, begun time.Time,
	wait time.Duration) bool {
	pause := time.NewTimer(wait)
	defer pause.Stop()
	for soon := d.askers.soon[host]; ; {
		select {
		case <-pause.C:
			return true
		case <-soon:
			soon = nil
			pause.Reset(max(0, d.cfg.Refresh/5-time.Since(begun)))
		case <-ctx.Done():
			return false
		}
	}
}

func (d *directory) request(ctx context.Context, host string) (says answer, alone bool,
	err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.scheme+host+path, http.NoBody)
	if err != nil {
		return answer{}, false, err
	}
	nonce := rand.Text()
	r.Header.Set(fromHeader, d.self)
	r.Header.Set(idHeader, d.id)
	if d.guard.HasSecret() {
		r.Header.Set(nonceHeader, nonce)
		r.Header.Set(proofHeader, d.guard.Sign(asks, d.cluster, nonce))
	}
	got, err := d.client.Do(r)
	if err != nil {
		return answer{}, false, explained(err)
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer)) // so that the connection is reused
	switch {
	case err != nil:
		return answer{}, false, err
	case strings.HasPrefix(string(raw), "Client sent an HTTP request to an HTTPS server"):
		return answer{}, false, fmt.Errorf("%w: it uses TLS, and this member does not", errStrange)
	case got.StatusCode == http.StatusForbidden:
		return answer{}, false, fmt.Errorf(
			"%w: status %s: do both have the same secret and cluster name?", errStrange, got.Status)
	case got.StatusCode != http.StatusOK:
		return answer{}, false, fmt.Errorf("%w: status %s", errStrange, got.Status)
	}
	if !d.guard.Signed(got.Header.Get(proofHeader), answers, d.cluster, nonce,
		string(raw)) {
		return answer{}, false, fmt.Errorf("%w: it does not prove that it has the secret",
			errStrange)
	}
	if err := json.Unmarshal(raw, &says); err != nil {
		return answer{}, false, fmt.Errorf("%w: it cannot be decoded: %w", errStrange, err)
	}
	err = says.check()
	if err == nil {
		err = own(ctx, host, says, got.TLS)
	}
	if err != nil {
		return answer{}, false, fmt.Errorf("%w: %w", errStrange, err)
	}
	return says, got.Header.Get(listsHeader) == listsNot, nil
}

// explained returns the error of a request without its URL. What no repetition repairs becomes
// errStrange, with the likely mistake.
func explained(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	_, verified := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch text := err.Error(); {
	case strings.Contains(text, "malformed HTTP"):
		return fmt.Errorf("%w: is it the port of remoting? %w", errStrange, err)
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%w: it does not use TLS, and this member does", errStrange)
	case verified, alert, strings.Contains(text, "tls: "):
		return fmt.Errorf("%w: the certificates do not fit each other, or it is the port of "+
			"remoting: %w", errStrange, err)
	}
	return err
}

// own returns an error if the answer of a host is about a member that is not on it: the certificate
// of the connection, if there is one, must be valid for the address of the member, and the host of
// that address must be the host in the list, by its text or by what both resolve to.
func own(ctx context.Context, host string, says answer, state *tls.ConnectionState) error {
	if state != nil {
		if err := guard.Speaks(state.PeerCertificates[0], says.address()); err != nil {
			return err
		}
	}
	listed, _, err := net.SplitHostPort(host)
	if err != nil {
		return err
	}
	theirs := strings.Trim(says.Address, "[]")
	if strings.EqualFold(listed, theirs) {
		return nil
	}
	here, err := net.DefaultResolver.LookupHost(ctx, listed)
	if err != nil {
		return err
	}
	there, err := net.DefaultResolver.LookupHost(ctx, theirs)
	if err == nil && slices.ContainsFunc(here, func(a string) bool {
		return slices.Contains(there, a)
	}) {
		return nil
	}
	return fmt.Errorf("it answers for a member at %.80q, which is another host: "+
		"the list must name the hosts under which the members can be reached", theirs)
}

// Leave implements roster.Directory. It closes the port, which the other members notice.
func (d *directory) Leave(context.Context, roster.Self) error { return d.server.Close() }

// Close implements roster.Directory.
func (d *directory) Close() error {
	<-d.served
	d.client.CloseIdleConnections()
	return nil
}

// hosts is the state of the hosts of the list.
type hosts struct {
	self      roster.Self
	dropAfter time.Duration
	by        map[string]*host                // by host:port in the list
	asked     func(host, id string) time.Time // see askers.asked
}

type host struct {
	name  string
	says  answer
	since time.Time // since when it answers for the address of says
	heard time.Time // time of the last answer; zero means not listed
	shown bool      // heard within dropAfter at the last call of listed
	state state     // as logged
	err   error     // of the last request
	alone bool      // it does not list this member, as logged
}

// state is what is known about a host.
type state uint8

const (
	unknown state = iota
	answering
	silent
	strange // something else listens there
	foreign // a member of another cluster
)

// errStrange means that something answered that is no server of health requests.
var errStrange = errors.New("not an answer to a health request")

// state returns what the result of a request says about the host.
func (n *news) state(cluster string) state {
	switch {
	case errors.Is(n.err, errStrange):
		return strange
	case n.err != nil:
		return silent
	case n.says.ClusterName != cluster:
		return foreign
	}
	return answering
}

// hear records the result of a request, and reports whether it may change the list. A host that
// answers as before does not.
func (h *hosts) hear(now time.Time, n news) bool {
	at := h.by[n.host]
	if at == nil {
		at = &host{name: n.host}
		h.by[n.host] = at
	}
	is := n.state(h.self.Cluster)
	if is != at.state {
		h.log(n, at.state, is)
		at.state = is
	}
	if at.err = n.err; n.err == nil && n.alone != at.alone {
		at.alone = n.alone
		h.logAlone(n)
	}
	switch {
	case is == answering:
		same := at.shown && !h.dropped(now, at) && at.says.equal(n.says)
		if at.heard.IsZero() || at.says.address() != n.says.address() {
			at.since = now
		}
		at.says, at.heard = n.says, now
		return !same
	case is == foreign, errors.Is(n.err, syscall.ECONNREFUSED):
		if is == foreign {
			at.says = n.says
		}
		at.heard = time.Time{} // its process is gone
		return at.shown
	}
	return false
}

// silences is for how many times dropAfter a member may be listed that asks, but does not answer.
const silences = 3

// dropped reports whether a host is silent: within dropAfter it has not answered, nor has its
// process asked while this one waited for an answer.
func (h *hosts) dropped(now time.Time, at *host) bool {
	heard := at.heard
	if least := heard.Add((silences - 1) * h.dropAfter); h.asked != nil && !heard.IsZero() {
		if asked := h.asked(at.name, at.says.ID); asked.After(least) {
			heard = least
		} else if asked.After(heard) {
			heard = asked
		}
	}
	return now.Sub(heard) >= h.dropAfter
}

// expired reports whether a listed host has become silent.
func (h *hosts) expired(now time.Time) bool {
	for _, at := range h.by {
		if at.shown && h.dropped(now, at) {
			return true
		}
	}
	return false
}

// log logs that the state of a host has changed. A wrong list of hosts and a wrong name of the
// cluster are mistakes that time does not repair.
func (h *hosts) log(n news, was, is state) {
	log := h.self.Log.With(slog.String("host", n.host))
	switch is {
	case answering:
		if was != unknown {
			log.Info("host answers")
		}
	case silent:
		log.Info("host does not answer", slog.Any("error", n.err))
	case strange:
		log.Warn("host does not answer as a member: check its address for health requests, TLS "+
			"and the secret",
			slog.Any("error", n.err))
	case foreign:
		log.Warn("host belongs to another cluster",
			slog.String("theirs", fmt.Sprintf("%.80s", n.says.ClusterName)),
			slog.String("here", h.self.Cluster))
	}
}

func (h *hosts) logAlone(n news) {
	log := h.self.Log.With(slog.String("host", n.host), slog.String("its", n.says.address()))
	if n.alone {
		log.Warn("a member does not list this one: add this member to its hosts, or look there " +
			"why it cannot reach this member")
		return
	}
	log.Info("the member lists this one again")
}

// account names the hosts that are no members, with the last answer and what to check.
func (h *hosts) account(now time.Time, listed []string) string {
	var all []string
	for _, name := range listed {
		at := h.by[name]
		var why string
		switch {
		case at == nil:
			why = "not asked yet"
		case at.state == foreign:
			why = fmt.Sprintf("belongs to cluster %.80q", at.says.ClusterName)
		case at.err != nil:
			why = fmt.Sprintf("%v: %s", at.err, advice(at.err))
			if !at.heard.IsZero() {
				why = fmt.Sprintf("silent for %v: ", now.Sub(at.heard).Round(time.Second/10)) + why
			}
		default:
			continue
		}
		all = append(all, name+" ("+why+")")
		if len(all) == maxNamed && len(listed) > maxNamed {
			all = append(all, "…")
			break
		}
	}
	return strings.Join(all, ", ")
}

// maxNamed bounds the hosts in an account.
const maxNamed = 8

// advice says what to check after an error of a request.
func advice(err error) string {
	_, dns := errors.AsType[*net.DNSError](err)
	switch {
	case dns:
		return "check the name, and the name server"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "check that the member runs, and its port for health requests"
	case errors.Is(err, errStrange):
		return "check its address for health requests, TLS and the secret"
	}
	return "check that the member runs, and the network and firewalls between"
}

// resume excludes a pause of this process from the silence of hosts: no host was queried during it.
func (h *hosts) resume(paused time.Duration) {
	for _, at := range h.by {
		if !at.heard.IsZero() {
			at.heard = at.heard.Add(paused)
		}
	}
}

// listed returns this member and the members that have answered within dropAfter. If several hosts
// answer for one address, the first that did counts: no host displaces the member of another one.
func (h *hosts) listed(now time.Time) []roster.Member {
	out := []roster.Member{h.self.Member}
	first := map[string]*host{}
	for _, at := range h.by {
		at.shown = !h.dropped(now, at)
		if !at.shown || at.says.ID == h.self.ID ||
			at.says.address() == h.address() {
			continue
		}
		if other := first[at.says.address()]; other == nil || at.since.Before(other.since) {
			first[at.says.address()] = at
		}
	}
	for _, at := range first {
		out = append(out, at.says.member())
	}
	return out
}

// address returns the address of this member.
func (h *hosts) address() string { return address(h.self.Host, h.self.Port) }
