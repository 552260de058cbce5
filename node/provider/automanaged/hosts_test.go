package automanaged

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	upstream "github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns the address of a server, which listens in memory until the test ends.
func serve(t *testing.T, h http.Handler) string {
	server := &httptest.Server{Listener: memnet.Listen(), Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// inMemory is newClient for such servers.
func inMemory(timeout time.Duration) *http.Client {
	client := newClient(timeout, time.Second, nil)
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context,
		network, address string) (net.Conn, error) {
		c, err := memnet.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &patient{Conn: c, asked: make(chan struct{})}, nil
	}
	return client
}

var (
	errSilent  = errors.New("timeout")
	errRefused = fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect",
		syscall.ECONNREFUSED)})
)

func TestHosts(t *testing.T) {
	self := roster.Self{Member: roster.Member{ID: "self", Host: "h", Port: 1}, Cluster: "shop",
		Log: slog.New(slog.DiscardHandler)}
	says := func(id, cluster string) answer {
		return answer{ID: id, Address: "h", Port: 2, ClusterName: cluster}
	}
	type step struct {
		after time.Duration
		news  *news
		want  string
	}
	from := func(says answer, err error) *news { return &news{host: "b:1", says: says, err: err} }
	for name, steps := range map[string][]step{
		"one missed answer drops nobody": {
			{0, from(says("b", "shop"), nil), "b self"},
			{1 * time.Second, from(answer{}, errSilent), "b self"},
			{2 * time.Second, nil, "b self"},
			{3 * time.Second, nil, "self"},
			{4 * time.Second, from(says("b", "shop"), nil), "b self"},
		},
		"a refused connection does": {
			{0, from(says("b", "shop"), nil), "b self"},
			{1 * time.Second, from(answer{}, errRefused), "self"},
		},
		"another process on the host is another member": {
			{0, from(says("b", "shop"), nil), "b self"},
			{1 * time.Second, from(says("c", "shop"), nil), "c self"},
		},
		"another cluster on the host is no member": {
			{0, from(says("b", "shop"), nil), "b self"},
			{1 * time.Second, from(says("x", "shop2"), nil), "self"},
		},
		"a host does not take the address of another one": {
			{0, from(says("b", "shop"), nil), "b self"},
			{1 * time.Second, &news{host: "c:1", says: says("c", "shop")}, "b self"},
			{2 * time.Second, from(answer{}, errRefused), "c self"},
			{3 * time.Second, from(says("b2", "shop"), nil), "c self"},
		},
		"a host does not take our address": {
			{0, from(answer{ID: "b", Address: "h", Port: 1, ClusterName: "shop"}, nil), "self"},
		},
		"we are listed once": {
			{0, from(says("self", "shop"), nil), "self"},
		},
	} {
		h := hosts{self: self, dropAfter: 3 * time.Second, by: map[string]*host{}}
		start := time.Unix(1000, 0)
		for i, s := range steps {
			if s.news != nil {
				h.hear(start.Add(s.after), *s.news)
			}
			var ids []string
			for _, m := range h.listed(start.Add(s.after)) {
				ids = append(ids, m.ID)
			}
			slices.Sort(ids)
			if got := strings.Join(ids, " "); got != s.want {
				t.Errorf("%s: step %d: %q, want %q", name, i, got, s.want)
			}
		}
	}
}

// A wrong name of the cluster is a mistake, which no later answer repairs. The member was often
// down before, so the line must not depend on what was logged then.
func TestHosts_AnotherClusterIsLoggedOnce(t *testing.T) {
	var out strings.Builder
	self := roster.Self{Member: roster.Member{ID: "self"}, Cluster: "shop",
		Log: slog.New(slog.NewTextHandler(&out, nil))}
	h := hosts{self: self, dropAfter: 3 * time.Second, by: map[string]*host{}}
	start := time.Unix(1000, 0)
	h.hear(start, news{host: "b:1", err: errRefused})
	for range 3 {
		h.hear(start, news{host: "b:1", says: answer{ID: "b", ClusterName: "shup"}})
	}
	const line = `level=WARN msg="host belongs to another cluster" host=b:1 theirs=shup here=shop`
	if got := strings.Count(out.String(), line); got != 1 {
		t.Errorf("logged %d times:\n%s", got, &out)
	}
}

// A process that was frozen, or whose machine was suspended, finds the last answers of all members
// old, but it has queried none of them.
func TestHosts_AnOwnPauseDropsNobody(t *testing.T) {
	self := roster.Self{Member: roster.Member{ID: "self"}, Cluster: "shop",
		Log: slog.New(slog.DiscardHandler)}
	h := hosts{self: self, dropAfter: 3 * time.Second, by: map[string]*host{}}
	start := time.Unix(1000, 0)
	h.hear(start, news{host: "b:1", says: answer{ID: "b", Address: "b", Port: 1,
		ClusterName: "shop"}})
	h.hear(start, news{host: "c:1", err: errSilent})
	h.resume(time.Hour)
	if got := h.listed(start.Add(time.Hour)); len(got) != 2 {
		t.Errorf("after the pause: %+v", got)
	}
	if got := h.listed(start.Add(time.Hour + 3*time.Second)); len(got) != 1 {
		t.Errorf("silent since: %+v", got)
	}
}

// A process that gets its turn late, but not after a pause that it could notice, judges nobody by
// what it may not have read yet.
func TestTurns_ALateTurnIsNoSilence(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	turns := turns{every: time.Second, last: start}
	for i, s := range []struct{ due, now, want time.Duration }{
		{1000, 1010, 0},     // on time
		{0, 1200, 0},        // an answer
		{2000, 2700, 700},   // late
		{0, 2800, 0},        // an answer
		{3000, 3700, 700},   // late again, although a second later
		{0, 6700, 2000},     // paused; an answer comes first
		{4000, 6710, 0},     // then the tick, out of the same pause
		{7000, 7010, 0},     // on time
		{8000, 11010, 3010}, // paused, and the tick comes first
		{9000, 11020, 0},    // another one, out of the same pause
	} {
		var due time.Time
		if s.due > 0 {
			due = at(s.due * time.Millisecond)
		}
		if got := turns.late(at(s.now*time.Millisecond), due); got != s.want*time.Millisecond {
			t.Errorf("turn %d: %v late, want %v", i, got, s.want*time.Millisecond)
		}
	}
}

// A list of hosts with the addresses of remoting is a mistake, too: its port answers, but not over
// HTTP.
func TestRequest_OfThePortOfRemotingIsStrange(t *testing.T) {
	l := memnet.Listen()
	server := grpc.NewServer()
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	d := &directory{scheme: "http://", client: inMemory(10 * time.Second)}
	defer d.client.CloseIdleConnections()
	if _, _, err := d.request(t.Context(), l.Addr().String()); !errors.Is(err, errStrange) {
		t.Errorf("an answer of gRPC: %v", err)
	}
	server.Stop()
	if _, _, err := d.request(t.Context(), l.Addr().String()); errors.Is(err, errStrange) {
		t.Errorf("no answer: %v", err)
	}
}

// A server of gRPC speaks as soon as it is connected, here long before the request leaves. The
// client of net/http gives up such a connection, so that the host looked silent.
func TestRequest_OfAServerThatSpeaksFirstIsStrange(t *testing.T) {
	l := memnet.Listen()
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00"))
			_, _ = c.Read(make([]byte, 1<<10)) // no preface of HTTP/2
			_ = c.Close()
		}
	}()
	d := &directory{scheme: "http://", client: inMemory(10 * time.Second)}
	defer d.client.CloseIdleConnections()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { // until it has given up, if it does
			for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end) &&
				c.Conn.SetDeadline(time.Time{}) == nil; {
				time.Sleep(time.Millisecond)
			}
		},
	})
	if _, _, err := d.request(ctx, l.Addr().String()); !errors.Is(err, errStrange) {
		t.Errorf("it spoke first: %v", err)
	}
}

// An answer from a host must not be able to cause harm.
func TestRequest_RefusesBadAnswers(t *testing.T) {
	for body, want := range map[string]string{
		``:                                     "decoded",
		`[1]`:                                  "decoded",
		`{"id":"` + strings.Repeat("x", 1<<20): "decoded",
		`{"address":"h","port":1}`:             "id of 0 bytes",
		`{"id":"a","port":1}`:                  "address of 0 bytes",
		`{"id":"a","address":"h","port":0}`:    "port 0",
		`{"id":"a","address":"h","port":1,"kinds":[` + strings.Repeat(`"k",`, 1000) +
			`"k"]}`: "1001 kinds",
	} {
		host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(body))
		}))
		d := &directory{scheme: "http://", client: inMemory(time.Second)}
		_, _, err := d.request(t.Context(), host)
		d.client.CloseIdleConnections()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("answer %.40q: %v, want %q", body, err, want)
		}
	}
	d := &directory{scheme: "http://", client: inMemory(time.Second)}
	defer d.client.CloseIdleConnections()
	if _, _, err := d.request(t.Context(), serve(t, http.NotFoundHandler())); err == nil ||
		!strings.Contains(err.Error(), "404") {
		t.Errorf("status: %v", err)
	}
}

// A host speaks for the members on it, and for no others.
func TestRequest_AHostSpeaksForItself(t *testing.T) {
	var body string
	host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.Redirect(w, r, path, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	d := &directory{scheme: "http://", client: inMemory(time.Second)}
	defer d.client.CloseIdleConnections()
	for address, ours := range map[string]bool{"127.0.0.1": true, "localhost": true,
		"127.0.0.2": false, "10.0.0.7": false} {
		body = fmt.Sprintf(`{"id":"a","address":%q,"port":1}`, address)
		if _, _, err := d.request(t.Context(), host); (err == nil) != ours ||
			!ours && !errors.Is(err, errStrange) {
			t.Errorf("for %s: %v", address, err)
		}
	}
	redirecting := serve(t, http.RedirectHandler("http://"+host+path, http.StatusFound))
	body = `{"id":"a","address":"127.0.0.1","port":1}`
	if _, _, err := d.request(t.Context(), redirecting); err == nil ||
		!strings.Contains(err.Error(), "302") {
		t.Errorf("redirected: %v", err)
	}
}

func TestConfig_SaysWhatIsWrong(t *testing.T) {
	good := Config{Hosts: []string{"h:1"}}
	if err := good.validate(); err != nil {
		t.Errorf("the least configuration: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"Port (70000)":             func(c *Config) { c.Port = 70000 },
		"Hosts has 0":              func(c *Config) { c.Hosts = nil },
		`"h" must be host:port`:    func(c *Config) { c.Hosts = []string{"h"} },
		`":1" must be host:port`:   func(c *Config) { c.Hosts = []string{":1"} },
		`"h:x" must be host:port`:  func(c *Config) { c.Hosts = []string{"h:x"} },
		"Refresh (1ms)":            func(c *Config) { c.Refresh = time.Millisecond },
		"DropAfter (1s)":           func(c *Config) { c.DropAfter = time.Second },
		"DropAfter (1h0m0s) must ": func(c *Config) { c.DropAfter = time.Hour },
	} {
		c := good
		change(&c)
		if err := c.validate(); !errors.Is(err, errInvalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := New(c)(); !errors.Is(err, errInvalid) {
			t.Errorf("made with %s: %v", want, err)
		}
	}
}

// Members with Proto.Actor's provider can read our answers, and we can read theirs.
func TestAnswer_IsThatOfProtoActorsProvider(t *testing.T) {
	ours := answer{ID: "a", Address: "h", AutoManagePort: 2, Port: 1, Kinds: []string{"k"},
		ClusterName: "shop"}
	theirs := upstream.NewNode("shop", "a", "h", 1, 2, []string{"k"})
	for _, c := range []struct{ from, to, want any }{{ours, &upstream.NodeModel{}, theirs},
		{theirs, &answer{}, &ours}} {
		body, err := json.Marshal(c.from)
		if err == nil {
			err = json.Unmarshal(body, c.to)
		}
		if err != nil || !reflect.DeepEqual(c.to, c.want) {
			t.Errorf("%T reads %s as %+v, %v; want %+v", c.to, body, c.to, err, c.want)
		}
	}
}

// Only a change of the list is reported. A host that answers as before changes nothing.
func TestHosts_ReportChangesOnly(t *testing.T) {
	self := roster.Self{Member: roster.Member{ID: "self"}, Cluster: "shop",
		Log: slog.New(slog.DiscardHandler)}
	h := hosts{self: self, dropAfter: 3 * time.Second, by: map[string]*host{}}
	says := answer{ID: "b", Address: "b", Port: 1, ClusterName: "shop", Kinds: []string{"x"}}
	now := time.Unix(1000, 0)
	hear := func(want bool, says answer, err error) {
		t.Helper()
		if got := h.hear(now, news{host: "b:1", says: says, err: err}); got != want {
			t.Errorf("the answer changes the list: %v, want %v", got, want)
		}
		h.listed(now)
		now = now.Add(time.Second)
	}
	hear(false, answer{}, errSilent)
	hear(true, says, nil)
	for range 5 {
		hear(false, says, nil)
	}
	hear(false, answer{}, errSilent)
	hear(false, says, nil)
	restarted := says
	restarted.ID = "b2"
	hear(true, restarted, nil)
	hear(false, restarted, nil)
	hear(true, answer{}, errRefused)
	hear(false, answer{}, errRefused)
	hear(true, restarted, nil)
	now = now.Add(time.Second)
	if h.expired(now) {
		t.Error("it is dropped too early")
	}
	now = now.Add(time.Second)
	if !h.expired(now) {
		t.Error("it has become silent")
	}
	h.listed(now)
	if h.expired(now) {
		t.Error("reported twice")
	}
	hear(true, restarted, nil)
}
