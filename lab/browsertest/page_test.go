//go:build browser

package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/cockpit/api"
)

const desk = 1280

// verdict returns an expression that reports whether the page shows the given verdict.
func verdict(text string) string {
	return "document.querySelector('#verdict').textContent === " + strconv.Quote(text)
}

// happened returns an expression that reports whether the page shows an event with the given text.
func happened(text string) string {
	return "[...document.querySelectorAll('.events .text')].some((e) => e.textContent.includes(" +
		strconv.Quote(text) + "))"
}

// helpful checks that the page shows problems, and what to do about each.
func helpful(t *testing.T, p *page) {
	t.Helper()
	require.Equal(t, "true", p.eval(
		"document.querySelectorAll('.problems li').length > 0 && [...document.querySelectorAll('.problems li')].every((e) => e.querySelector('.do').textContent.length > 10)"), "each problem says what to do")
}

func TestPage(t *testing.T) {
	s := startShop(t)
	b := startBrowser(t)
	docs := documents{t.TempDir()}
	docs.served(t, s.url)
	firstPaint(t, b, s.url)
	p := b.open(s.url, media{width: desk, height: 900})
	p.until(10*time.Second, verdict("The cluster is whole"))
	p.until(20*time.Second, "document.querySelectorAll('#entries tbody tr').length === 15 && document.querySelectorAll('.cell').length === 48 && document.querySelectorAll('td.seen').length === 9")

	t.Run("the same in pictures and tables", func(t *testing.T) {
		p := p.in(t)
		require.Equal(t, "3", p.eval("document.querySelectorAll('.ring circle:not(.here)').length"))
		require.Equal(t, "3", p.eval("document.querySelectorAll('.split tbody tr').length"))
		require.Equal(t, "9", p.eval("document.querySelectorAll('td.seen').length"),
			"each member has all three in view")
		require.Equal(t, "48",
			p.eval("[...document.querySelectorAll('#shards tbody td:last-child')].reduce((n, c) => n + Number(c.textContent), 0)"))
	})
	t.Run("entries", func(t *testing.T) {
		p := p.in(t)
		p.eval("(() => { const i = document.querySelector('#prefix'); i.value = 'cart/c1'; document.querySelector('#search').requestSubmit(); })()")
		p.until(5*time.Second,
			"[...document.querySelectorAll('#entries tbody th')].length > 1 && [...document.querySelectorAll('#entries tbody th')].every((e) => e.textContent.startsWith('cart/c1'))")
		last := p.eval("[...document.querySelectorAll('#entries tbody th')].at(-1).textContent")
		p.eval("document.querySelector('#next').click()")
		p.until(5*time.Second, "document.querySelector('#entries tbody th').textContent > "+
			strconv.Quote(last))
		p.eval("document.querySelector('#entries tbody button').click()")
		p.until(5*time.Second,
			"document.querySelector('#dialog').open && document.querySelector('#dialog-text').textContent.length > 0")
		docs.rendered(t, p, "value")
		p.eval("document.querySelector('#dialog').close()")
	})
	t.Run("read by a machine", func(t *testing.T) {
		p := p.in(t)
		accessible(t, p)
		docs.rendered(t, p, "whole")
	})
	t.Run("narrow and wide", func(t *testing.T) {
		p := p.in(t)
		narrow(t, p)
		p.look(media{width: desk, height: 900})
	})
	if *pictures != "" {
		shots(t, b, s.url, *pictures)
	}
	p.eval("window.marked = document.querySelector('#verdict')")

	t.Run("a lease is released by hand", func(t *testing.T) {
		p := p.in(t)
		before := clerk(t, s)
		require.Equal(t, strconv.FormatUint(before.Token, 10), p.eval(clerkToken))
		s.concordctl("release", "singleton-clerk", strconv.FormatUint(before.Token, 10))
		p.until(5*time.Second, happened("operator action: release lease"))
		p.until(15*time.Second, clerkToken+" > "+strconv.FormatUint(before.Token, 10))
		require.Greater(t, clerk(t, s).Token, before.Token)
	})

	t.Run("a lease is released by keyboard", func(t *testing.T) {
		p := p.in(t)
		before := clerk(t, s).Token
		p.reach(tab, "#lease-name")
		p.write("singleton-clerk")
		p.press(enter)
		const button = "#lease-found button[data-action=release]"
		p.until(10*time.Second, "document.querySelector("+strconv.Quote(button)+")")
		p.reach(tab, button)
		p.press(enter)
		p.opened()
		require.True(t, p.focused("#act-cancel"), "nothing happens by accident")
		require.Contains(t, p.eval("document.querySelector('#act').innerText"), "singleton-clerk")
		require.Positive(t, named(t, p)["dialog"])
		docs.rendered(t, p, "release")
		p.press(escape)
		p.until(5*time.Second, "!document.querySelector('#act').open")
		require.True(t, p.focused(button), "the focus is back where it was")
		require.Equal(t, before, clerk(t, s).Token)

		p.press(enter)
		p.opened()
		// Closed and opened again before the browser reports that it was closed, as by fast keys.
		p.eval("(() => { document.querySelector('#act-cancel').click(); document.querySelector(" +
			strconv.Quote(button) + ").click(); })()")
		p.opened()
		p.reach(tab, "#act-go")
		p.press(enter)
		p.said("The tenure with token " + strconv.FormatUint(before, 10) +
			" no longer holds lease singleton-clerk.")
		p.until(20*time.Second, clerkToken+" > "+strconv.FormatUint(before, 10))
	})

	t.Run("a shard is moved by keyboard", func(t *testing.T) {
		p := p.in(t)
		p.reach(tab, "#shard-toggle")
		p.press(space)
		const button = "#shard-list button[data-action=move]"
		p.until(10*time.Second, "document.querySelectorAll("+strconv.Quote(button)+
			").length === 16")
		p.reach(tab, button)
		const cell = "document.querySelector('[data-key=c0]')"
		was, colour := p.eval(cell+".title"), p.eval(cell+".className")
		p.press(enter)
		p.opened()
		require.Positive(t, named(t, p)["combobox"])
		p.reach(backTab, "#act-choice")
		p.press(down)
		to := p.eval("document.querySelector('#act-choice').value")
		require.NotContains(t, was, to)
		docs.rendered(t, p, "move")
		p.picture(filepath.Join(t.ArtifactDir(), "move.png"))
		p.reach(tab, "#act-go")
		p.press(enter)
		p.said("Shard 0 of cart was requested to be on " + to)
		p.until(60*time.Second, cell+".title === "+strconv.Quote("shard 0: "+to))
		require.NotEqual(t, colour, p.eval(cell+".className"), "the map shows the move")
		p.until(10*time.Second,
			"document.querySelector('#shard-list tbody tr').textContent.includes("+
				strconv.Quote(to)+
				") && document.querySelector('#shard-list tbody tr .tag').textContent === 'requested'")
		shard := get[api.Page[api.Shard]](s, "shards?type=cart&limit=1").Items[0]
		require.Equal(t, to, shard.Home)
		accessible(t, p)
		docs.rendered(t, p, "moved")
		narrow(t, p)
		p.look(media{width: desk, height: 900})
	})

	t.Run("a node is cut off while the page is open", func(t *testing.T) {
		p := p.in(t)
		address, url := s.last()
		other := b.open(url, media{width: desk, height: 900}).in(t)
		other.until(10*time.Second, verdict("The cluster is whole"))
		s.order("cut")
		require.Eventually(t, func() bool {
			return strings.Contains(s.text(), "cut off from the others")
		}, 5*time.Second, 20*time.Millisecond, "%s", s.text())
		p.until(20*time.Second, verdict("A member is missing"))
		other.until(20*time.Second, verdict("This member is cut off"))
		// Each side's view is on both pages, since the cockpits still reach each other.
		for _, side := range []*page{p, other} {
			side.until(10*time.Second,
				"document.querySelectorAll('td.unseen').length === 4 && document.querySelectorAll('td.seen').length === 5")
			require.Equal(t, "2", side.eval("document.querySelectorAll('.ring line.none').length"))
			helpful(t, side)
		}
		p.until(10*time.Second, "document.querySelector('.problems').textContent.includes("+
			strconv.Quote(address+" has a different view of the cluster")+")")
		accessible(t, p)
		docs.rendered(t, p, "cut")
		docs.rendered(t, other, "cut-off")
		p.picture(filepath.Join(t.ArtifactDir(), "cut.png")) // kept with go test -artifacts
		other.picture(filepath.Join(t.ArtifactDir(), "cut-off.png"))
		s.order("heal")
		// A cart that the node alone could not create while it was cut off remains a warning.
		for _, side := range []*page{p, other} {
			side.until(60*time.Second,
				"document.querySelector('#verdict').textContent.startsWith('The cluster is whole')")
			side.until(10*time.Second, "document.querySelectorAll('td.seen').length === 9")
			side.until(10*time.Second,
				"document.querySelector('#verdict-more').textContent.includes('healed after')")
		}
		other.until(10*time.Second,
			"document.querySelector('#cost').textContent.includes('incarnation 2')")
		homely(t, other, url)
		quiet(t, other)
		other.do("Page.close", nil, nil)
	})

	t.Run("a node is killed while the page is open", func(t *testing.T) {
		p := p.in(t)
		require.NoError(t, syscall.Kill(s.victim, syscall.SIGKILL))
		killed := time.Now()
		noticed := make(chan time.Time, 1)
		go func() { noticed <- firstMissing(t, s.url) }()
		p.until(15*time.Second, verdict("A member is missing"))
		shown := time.Since(killed)
		at := <-noticed
		t.Logf("page showed the loss %v after the kill; the node reported it after %v; load %.1f",
			shown.Round(10*time.Millisecond), at.Sub(killed).Round(10*time.Millisecond), load())
		helpful(t, p)
		require.Equal(t, "1", p.eval("document.querySelectorAll('.ring .lost').length"))
		p.until(15*time.Second, happened(" is missing"))
		accessible(t, p)
		docs.rendered(t, p, "killed")
		// The dialog stays open until the member lives again, under the same address.
		p.reach(tab, "button[data-action=forget]")
		p.press(enter)
		p.opened()
		docs.rendered(t, p, "forget")
		p.picture(filepath.Join(t.ArtifactDir(), "missing.png"))
		p.until(60*time.Second, verdict("The cluster is whole"))
		p.until(10*time.Second,
			"document.querySelector('#verdict-more').textContent.includes('healed after')")
		require.Eventually(t, func() bool {
			return strings.Contains(s.text(), "is back")
		}, time.Minute, 50*time.Millisecond, "its replica is ready: %s", s.text())
		p.reach(tab, "#act-go")
		p.press(enter)
		p.until(40*time.Second, "document.querySelector('#act-error').textContent.length > 0")
		require.Contains(t, p.eval("document.querySelector('#act-error').textContent"),
			"it answers", "a living member is not forgotten")
		require.True(t, p.focused("#act-cancel"))
		p.press(enter)
		p.until(5*time.Second, "!document.querySelector('#act').open")
		require.Equal(t, 3, get[[]api.Replicator](s, "replicators")[0].Counted)
	})

	require.Equal(t, "true", p.eval("window.marked === document.querySelector('#verdict')"),
		"the page must not have been reloaded")
	t.Run("nothing leaves the node", func(t *testing.T) { homely(t, p, s.url) })
	t.Run("the console is quiet", func(t *testing.T) { quiet(t, p, "/api/v1/actions/forget") })
	t.Run("the HTML is valid", docs.validate)
}

// clerk returns the singleton as the first node shows it.
func clerk(t *testing.T, s *shop) api.Singleton {
	t.Helper()
	all := get[[]api.Singleton](s, "singletons")
	require.Len(t, all, 1)
	return all[0]
}

// clerkToken is an expression for the token of the singleton on the page.
const clerkToken = "Number(document.querySelector('#singletons tbody tr').cells[3].textContent)"

// firstPaint logs how long the first paint of the page takes by the browser's own clock, beside
// that of a document without files, and the load of the machine.
func firstPaint(t *testing.T, b *browser, url string) {
	t.Helper()
	const first = "performance.getEntriesByType('paint').find((e) => e.name === 'first-contentful-paint').startTime"
	paint := func(url, shown string) float64 {
		p := b.open(url, media{width: desk, height: 900})
		p.until(30*time.Second, shown+" && "+first+" > 0")
		at := p.number(first)
		p.do("Page.close", nil, nil)
		return at
	}
	for range 3 {
		bare := paint("data:text/html,<title>bare</title><p>bare</p>", "document.title === 'bare'")
		t.Logf("first contentful paint after %.0f ms, of a bare document after %.0f ms; load %.1f",
			paint(url, verdict("The cluster is whole")), bare, load())
	}
}

// load returns the load average over the last minute, or 0 if the system does not tell it.
func load() (average float64) {
	raw, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(raw), &average)
	}
	return average
}
