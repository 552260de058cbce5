//go:build browser

package browsertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shop is a quickstart that continues to run until the end of the test.
type shop struct {
	url    string
	victim int // process id of its third node
	mu     sync.Mutex
	said   bytes.Buffer
}

func (s *shop) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.Write(p)
}

func (s *shop) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func startShop(t *testing.T) *shop {
	t.Helper()
	program := filepath.Join(t.TempDir(), "quickstart")
	out, err := exec.Command("go", "build", "-o", program, "../../examples/quickstart").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s := &shop{}
	cmd := exec.Command(program, "-ui", "-kill", "none")
	cmd.Stdout, cmd.Stderr = s, s
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		require.NoError(t, cmd.Wait(), "the exit status after Ctrl-C must be 0: %s", s.text())
	})
	found := regexp.MustCompile(`(http://\S+)\n(?s:.*)kill -9 (\d+)`)
	require.Eventually(t, func() bool { return found.MatchString(s.text()) }, time.Minute, 100*time.Millisecond, "%s", s.text())
	m := found.FindStringSubmatch(s.text())
	s.url = m[1]
	s.victim, err = strconv.Atoi(m[2])
	require.NoError(t, err)
	return s
}

// verdict returns an expression that reports whether the page shows the given verdict.
func verdict(text string) string {
	return "document.querySelector('#verdict').textContent === " + strconv.Quote(text)
}

func TestPage(t *testing.T) {
	s := startShop(t)
	b := startBrowser(t)
	p := b.open(s.url, media{width: 1280, height: 900})
	p.until(10*time.Second, verdict("The cluster is whole"))
	paint, err := strconv.ParseFloat(p.eval("performance.getEntriesByName('first-contentful-paint')[0].startTime"), 64)
	require.NoError(t, err)
	t.Logf("first contentful paint after %.0f ms", paint)
	p.until(10*time.Second, "document.querySelectorAll('#entries tbody tr').length === 15 && document.querySelectorAll('.cell').length === 48 && document.querySelectorAll('td.seen').length === 9")
	again := b.open(s.url, media{width: 1280, height: 900})
	again.until(10*time.Second, verdict("The cluster is whole"))
	t.Logf("in a second tab %s ms", again.eval("Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime)"))
	again.do("Page.close", nil, nil)

	t.Run("the same in pictures and tables", func(t *testing.T) {
		require.Equal(t, "3", p.eval("document.querySelectorAll('.ring circle:not(.here)').length"))
		require.Equal(t, "3", p.eval("document.querySelectorAll('.split tbody tr').length"))
		require.Equal(t, "9", p.eval("document.querySelectorAll('td.seen').length"), "each member has all three in view")
		require.Equal(t, "48", p.eval("[...document.querySelectorAll('#shards tbody td:last-child')].reduce((n, c) => n + Number(c.textContent), 0)"))
	})
	t.Run("entries", func(t *testing.T) {
		p.eval("(() => { const i = document.querySelector('#prefix'); i.value = 'cart/c1'; document.querySelector('#search').requestSubmit(); })()")
		p.until(5*time.Second, "[...document.querySelectorAll('#entries tbody th')].length > 1 && [...document.querySelectorAll('#entries tbody th')].every((e) => e.textContent.startsWith('cart/c1'))")
		last := p.eval("[...document.querySelectorAll('#entries tbody th')].at(-1).textContent")
		p.eval("document.querySelector('#next').click()")
		p.until(5*time.Second, "document.querySelector('#entries tbody th').textContent > "+strconv.Quote(last))
		p.eval("document.querySelector('#entries tbody button').click()")
		p.until(5*time.Second, "document.querySelector('#dialog').open && document.querySelector('#dialog-text').textContent.length > 0")
		p.eval("document.querySelector('#dialog').close()")
	})
	t.Run("read by a machine", func(t *testing.T) { accessible(t, p) })
	if *pictures != "" {
		shots(t, b, s.url, *pictures)
	}

	t.Run("a node is killed while the page is open", func(t *testing.T) {
		p.eval("window.marked = document.querySelector('#verdict')")
		require.NoError(t, syscall.Kill(s.victim, syscall.SIGKILL))
		killed := time.Now()
		noticed := make(chan time.Time, 1)
		go func() { noticed <- firstMissing(t, s.url) }()
		p.until(15*time.Second, verdict("A member is missing"))
		shown := time.Since(killed)
		at := <-noticed
		t.Logf("page showed the loss %v after the kill; the node reported it after %v", shown.Round(10*time.Millisecond), at.Sub(killed).Round(10*time.Millisecond))
		require.Less(t, killed.Add(shown).Sub(at), time.Second, "the page must show the loss within a second of the node's report")
		require.Equal(t, "true", p.eval("document.querySelectorAll('.problems li').length > 0 && [...document.querySelectorAll('.problems li')].every((e) => e.querySelector('.do').textContent.length > 10)"), "each problem says what to do")
		require.Equal(t, "1", p.eval("document.querySelectorAll('.ring .lost').length"))
		p.until(15*time.Second, "[...document.querySelectorAll('.events .text')].some((e) => e.textContent.endsWith(' is missing'))")
		accessible(t, p)
		p.picture(filepath.Join(t.ArtifactDir(), "missing.png")) // kept with go test -artifacts
		p.until(60*time.Second, verdict("The cluster is whole"))
		p.until(10*time.Second, "document.querySelector('#verdict-more').textContent.includes('healed after')")
		require.Equal(t, "true", p.eval("window.marked === document.querySelector('#verdict')"), "the page must not have been reloaded")
	})

	t.Run("nothing leaves the node", func(t *testing.T) {
		for _, raw := range b.seen("Network.requestWillBeSent") {
			var e struct{ Request struct{ URL string } }
			require.NoError(t, json.Unmarshal(raw, &e))
			require.True(t, strings.HasPrefix(e.Request.URL, s.url), e.Request.URL)
		}
		require.Empty(t, b.seen("Runtime.exceptionThrown"))
		for _, raw := range b.seen("Log.entryAdded") {
			require.NotContains(t, string(raw), `"level":"error"`, "%s", raw)
		}
	})
}

// firstMissing polls a node until it reports a missing member, and returns the time of that report.
func firstMissing(t *testing.T, url string) time.Time {
	for {
		res, err := http.Get(url + "api/v1/cluster")
		if err == nil {
			raw, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if bytes.Contains(raw, []byte(`"lost":["`)) {
				return time.Now()
			}
		}
		select {
		case <-t.Context().Done():
			return time.Now()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// accessible checks the accessibility tree.
func accessible(t *testing.T, p *page) {
	t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	p.do("Accessibility.getFullAXTree", nil, &tree)
	roles := map[string]int{}
	for _, n := range tree.Nodes {
		role, _ := n.Role.Value.(string)
		name, _ := n.Name.Value.(string)
		if n.Ignored {
			continue
		}
		roles[role]++
		switch role {
		case "button", "link", "image", "table", "heading", "searchbox", "combobox", "region":
			require.NotEmpty(t, strings.TrimSpace(name), "a %s without a name", role)
		}
	}
	for _, role := range []string{"main", "banner", "contentinfo", "heading", "table", "button", "searchbox", "image"} {
		require.Positive(t, roles[role], "no %s in the tree: %v", role, roles)
	}
	require.Equal(t, "true", p.eval("(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return new Set(ids).size === ids.length })()"), "an id is used twice")
	require.Equal(t, "", p.eval("[...document.querySelectorAll('table')].filter((e) => !e.caption || e.querySelectorAll('th[scope]').length === 0).map((e) => e.textContent).join()"), "a table without caption or scopes")
}
