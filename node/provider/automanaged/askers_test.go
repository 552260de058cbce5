package automanaged

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

// A member that is missing in the lists of the others asks them, and is told.
func TestAskers_AMemberThatIsNotListedIsLoggedOnce(t *testing.T) {
	var out strings.Builder
	a := newAskers(Config{}.withDefaults(), roster.Self{Member: roster.Member{Host: "a", Port: 1},
		Log: slog.New(slog.NewTextHandler(&out, nil))})
	now := time.Unix(1000, 0)
	ask := func(from string, every time.Duration, n int) (told bool) {
		for range n {
			now = now.Add(every)
			told = a.unlisted(now, from)
		}
		return told
	}
	a.list([]roster.Member{{Host: "a", Port: 1}, {Host: "b", Port: 1}})
	for _, from := range []string{"a:1", "b:1", "", "d", "d:1\n", strings.Repeat("d", 300) + ":1"} {
		if ask(from, time.Second, 30) {
			t.Errorf("%.40q is told that it is not listed", from)
		}
	}
	if ask("d:1", time.Second, 9) || ask("d:1", time.Minute, 9) {
		t.Error("told too early")
	}
	if !ask("d:1", time.Second, 20) || strings.Count(out.String(), "level=WARN") != 1 ||
		!strings.Contains(out.String(), "member=d:1") {
		t.Errorf("logged:\n%s", &out)
	}
	a.list([]roster.Member{{Host: "d", Port: 1}})
	if ask("d:1", time.Second, 1) {
		t.Error("told although it is listed")
	}
	for i := range 1000 {
		ask("x:"+strings.Repeat("1", i%200), time.Second, 1)
	}
	if len(a.mu.asked) > maxAskers || len(a.mu.logged) > maxAskers {
		t.Errorf("%d and %d entries", len(a.mu.asked), len(a.mu.logged))
	}
}

// The other side: what a host answers about this member is logged when it changes.
func TestHosts_AHostThatDoesNotListThisMemberIsLogged(t *testing.T) {
	var out strings.Builder
	self := roster.Self{Member: roster.Member{ID: "self", Host: "d", Port: 1}, Cluster: "shop",
		Log: slog.New(slog.NewTextHandler(&out, nil))}
	h := hosts{self: self, dropAfter: 3 * time.Second, by: map[string]*host{}}
	start := time.Unix(1000, 0)
	for i, alone := range []bool{false, true, true, false} {
		h.hear(start.Add(time.Duration(i)*time.Second), news{host: "a:6330", alone: alone,
			says: answer{ID: "a", Address: "a", Port: 1, ClusterName: "shop"}})
	}
	for _, line := range []string{
		"level=WARN msg=\"a member does not list this one",
		"level=INFO msg=\"the member lists this one again\" host=a:6330 its=a:1",
	} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("logged, not %s once:\n%s", line, &out)
		}
	}
}

// One member without TLS: each side says which one it is.
func TestRequest_TLSAtOneSideOnlyIsNamed(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	server := &httptest.Server{Listener: memnet.Listen(), Config: &http.Server{Handler: nothing}}
	server.StartTLS()
	defer server.Close()
	with, without := server.Listener.Addr().String(), serve(t, nothing)
	for name, c := range map[string]*struct {
		d    directory
		host string
		want string
	}{
		"the host has it": {directory{scheme: "http://"}, with,
			"it uses TLS, and this member does not"},
		"the member has it": {directory{scheme: "https://"}, without,
			"it does not use TLS, and this member does"},
		"another authority": {directory{scheme: "https://"}, with,
			"certificates do not fit"},
	} {
		c.d.client = inMemory(10 * time.Second)
		_, _, err := c.d.request(t.Context(), c.host)
		c.d.client.CloseIdleConnections()
		if !errors.Is(err, errStrange) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
