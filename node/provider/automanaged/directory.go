package automanaged

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// directory consists of the hosts of the list.
type directory struct {
	cfg    Config
	server *http.Server
	served <-chan struct{} // closed when the server has stopped
	client *http.Client
}

func open(c Config, self roster.Self) (roster.Directory, error) {
	server, served, err := listen(c, self)
	if err != nil {
		return nil, err
	}
	timeout := max(c.DropAfter/2, c.Refresh)
	return &directory{cfg: c, server: server, served: served,
		client: newClient(timeout, c.Refresh)}, nil
}

// Where implements roster.Directory.
func (d *directory) Where() string {
	return fmt.Sprintf("automanaged with %d hosts", len(d.cfg.Hosts))
}

// news is the result of one request.
type news struct {
	host string
	says answer
	err  error
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
	known := hosts{self: self, dropAfter: d.cfg.DropAfter, by: map[string]*host{}}
	silence := time.NewTicker(d.cfg.Refresh)
	defer silence.Stop()
	for looked := time.Now(); ; {
		var n *news
		select {
		case got := <-heard:
			n = &got
		case <-silence.C:
		case <-ctx.Done():
			return nil
		}
		now := time.Now()
		if paused := now.Sub(looked) - d.cfg.Refresh; paused > d.cfg.Refresh {
			known.resume(paused) // this process or its machine was paused
		}
		if looked = now; n != nil {
			known.hear(now, *n)
		}
		report(known.listed(now))
	}
}

// ask queries one host repeatedly, and sends the results to heard.
func (d *directory) ask(ctx context.Context, host string, heard chan<- news) {
	for {
		says, err := d.request(ctx, host)
		select {
		case heard <- news{host, says, err}:
		case <-ctx.Done():
			return
		}
		pause := time.NewTimer(d.cfg.Refresh)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

func (d *directory) request(ctx context.Context, host string) (says answer, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	got, err := d.client.Do(r)
	if err != nil {
		if strings.Contains(err.Error(), "malformed HTTP") { // such as the port of remoting
			err = fmt.Errorf("%w: %w", errStrange, err)
		}
		return answer{}, err
	}
	defer got.Body.Close()
	body := io.LimitReader(got.Body, maxAnswer)
	if got.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, body) // so that the connection can be reused
		return answer{}, fmt.Errorf("%w: status %s", errStrange, got.Status)
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return answer{}, err
	}
	if err := json.Unmarshal(raw, &says); err != nil {
		return answer{}, fmt.Errorf("%w: it cannot be decoded: %w", errStrange, err)
	}
	if err := says.check(); err != nil {
		return answer{}, fmt.Errorf("%w: %w", errStrange, err)
	}
	return says, nil
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
	by        map[string]*host // by host:port in the list
}

type host struct {
	says  answer
	heard time.Time // time of the last answer; zero means not listed
	state state     // as logged
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

// hear records the result of a request.
func (h *hosts) hear(now time.Time, n news) {
	at := h.by[n.host]
	if at == nil {
		at = &host{}
		h.by[n.host] = at
	}
	is := n.state(h.self.Cluster)
	if is != at.state {
		h.log(n, at.state, is)
		at.state = is
	}
	switch {
	case is == answering:
		at.says, at.heard = n.says, now
	case is == foreign, errors.Is(n.err, syscall.ECONNREFUSED):
		at.heard = time.Time{} // its process is gone
	}
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
		log.Warn("host does not answer as a member: is this the address for health requests?",
			slog.Any("error", n.err))
	case foreign:
		log.Warn("host belongs to another cluster",
			slog.String("theirs", fmt.Sprintf("%.80s", n.says.ClusterName)),
			slog.String("here", h.self.Cluster))
	}
}

// resume excludes a pause of this process from the silence of hosts: no host was queried during it.
func (h *hosts) resume(paused time.Duration) {
	for _, at := range h.by {
		if !at.heard.IsZero() {
			at.heard = at.heard.Add(paused)
		}
	}
}

// listed returns this member and the members that have answered within dropAfter.
func (h *hosts) listed(now time.Time) []roster.Member {
	out := []roster.Member{h.self.Member}
	for _, at := range h.by {
		if now.Sub(at.heard) < h.dropAfter && at.says.ID != h.self.ID {
			m := at.says.member()
			m.Order = at.heard.UnixNano()
			out = append(out, m)
		}
	}
	return out
}
