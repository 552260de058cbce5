//go:build browser

package browsertest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// accessible checks the accessibility tree of the whole page.
func accessible(t *testing.T, p *page) {
	t.Helper()
	roles := named(t, p)
	for _, role := range []string{"main", "banner", "contentinfo", "heading", "table", "button",
		"searchbox", "image"} {
		require.Positive(t, roles[role], "no %s in the tree: %v", role, roles)
	}
	require.Equal(t, "true", p.eval(
		"(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return new Set(ids).size === ids.length })()"), "an id is used twice")
	require.Equal(t, "", p.eval(
		"[...document.querySelectorAll('table')].filter((e) => !e.caption || e.querySelectorAll('th[scope]').length === 0).map((e) => e.textContent).join()"), "a table without caption or scopes")
}

// named checks that what a screen reader finds has a name, and returns the number of nodes by role.
// While a dialog is open, this is only the dialog.
func named(t *testing.T, p *page) map[string]int {
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
		case "button", "link", "image", "table", "heading", "searchbox", "combobox", "textbox",
			"region", "dialog":
			require.NotEmpty(t, strings.TrimSpace(name), "a %s without a name", role)
		}
	}
	return roles
}

// homely checks that the page has sent requests only to the node at url.
func homely(t *testing.T, p *page, url string) {
	t.Helper()
	requests := p.seen("Network.requestWillBeSent")
	require.Greater(t, len(requests), 5, "the page, its files and the stream")
	for _, raw := range requests {
		var e struct{ Request struct{ URL string } }
		require.NoError(t, json.Unmarshal(raw, &e))
		require.True(t, strings.HasPrefix(e.Request.URL, url), e.Request.URL)
	}
	for _, other := range []string{"Network.webSocketCreated", "Network.webTransportCreated",
		"Network.directTCPSocketCreated", "Network.directUDPSocketCreated"} {
		require.Empty(t, p.seen(other), other)
	}
}

// quiet checks that the console of the page has no error and no warning. The browser itself logs
// each response that is an error; rejected lists parts of the URLs for which that is expected.
func quiet(t *testing.T, p *page, rejected ...string) {
	t.Helper()
	for _, raw := range p.seen("Runtime.exceptionThrown") {
		require.Fail(t, "exception", "%s", raw)
	}
	for _, raw := range p.seen("Runtime.consoleAPICalled") {
		var e struct{ Type string }
		require.NoError(t, json.Unmarshal(raw, &e))
		require.NotContains(t, []string{"error", "warning", "assert"}, e.Type, "%s", raw)
	}
entries:
	for _, raw := range p.seen("Log.entryAdded") {
		var e struct {
			Entry struct{ Source, Level, URL string }
		}
		require.NoError(t, json.Unmarshal(raw, &e))
		for _, part := range rejected {
			if e.Entry.Source == "network" && strings.Contains(e.Entry.URL, part) {
				continue entries
			}
		}
		require.NotContains(t, []string{"error", "warning"}, e.Entry.Level, "%s", raw)
	}
}

// narrow checks that the page has no horizontal scroll bar at any width from a small phone to a
// desktop, apart from the tables that scroll themselves.
func narrow(t *testing.T, p *page) {
	t.Helper()
	for _, width := range []int{320, 390, 640, 768, 1024, 1280, 1920} {
		p.look(media{width: width, height: 900})
		fits(t, p, width)
	}
}

func fits(t *testing.T, p *page, width int) {
	t.Helper()
	const outside = "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll')).map((e) => e.tagName + '#' + e.id + '.' + e.className).join(' ')"
	if wide := p.number("document.documentElement.scrollWidth"); wide > float64(width) {
		require.Fail(t, "too wide", "the page is %v pixels wide in a window of %d: %s", wide, width,
			p.eval(outside))
	}
}
