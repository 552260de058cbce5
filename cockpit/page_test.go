package cockpit_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// page returns the files of the page, by name.
func page(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob("static/*")
	require.NoError(t, err)
	for _, name := range names {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		all[filepath.Base(name)] = string(raw)
	}
	return all
}

func TestPage_IsSmallAndWhole(t *testing.T) {
	total := 0
	for name, text := range page(t) {
		total += len(text)
		for _, m := range regexp.MustCompile(
			`(?:from|src=|href=)\s*["']([^"'#]+)["']`).FindAllStringSubmatch(text, -1) {
			if at := strings.TrimPrefix(m[1], "./"); !strings.HasPrefix(at, "api/") {
				require.FileExists(t, filepath.Join("static", at), "%s refers to it", name)
			}
		}
		require.NotRegexp(t, `https?://`, strings.NewReplacer("http://www.w3.org/2000/svg",
			"").Replace(text), "%s must not refer to other servers", name)
	}
	require.LessOrEqual(t, total, 150_000)
}

// void lists the elements without an end tag.
var void = []string{"meta", "link", "input", "br", "hr", "img", "circle", "path"}

func TestPage_TagsAreBalancedAndNamesAreThere(t *testing.T) {
	html := page(t)["index.html"]
	require.True(t, strings.HasPrefix(html, "<!doctype html>\n<html lang=\"en\">"))
	var open []string
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(
		`<(/?)([a-z0-9]+)((?:\s+[a-zA-Z-]+(?:="[^"<]*")?)*)\s*(/?)>`).FindAllStringSubmatch(
		html, -1) {
		switch tag := m[2]; {
		case m[1] == "/":
			require.NotEmpty(t, open, tag)
			require.Equal(t, open[len(open)-1], tag)
			open = open[:len(open)-1]
		case m[4] == "" && !slices.Contains(void, tag):
			open = append(open, tag)
		}
		for _, id := range regexp.MustCompile(`\sid="([^"]*)"`).FindAllStringSubmatch(m[3], -1) {
			require.False(t, ids[id[1]], "id %s is used twice", id[1])
			ids[id[1]] = true
		}
		require.NotRegexp(t, `\s(on[a-z]+|style)=`, m[3], "the policy forbids inline code")
	}
	require.Empty(t, open)
	require.Equal(t, strings.Count(html, "<"),
		len(regexp.MustCompile(
			`<(/?)([a-z0-9]+)((?:\s+[a-zA-Z-]+(?:="[^"<]*")?)*)\s*(/?)>|<!doctype html>`).FindAllString(html, -1)), "malformed tag")
	for _, m := range regexp.MustCompile(
		`(?:aria-labelledby="|href="#|for=")([^"]+)"`).FindAllStringSubmatch(html, -1) {
		require.True(t, ids[m[1]], "no element has the id %s", m[1])
	}
	require.NotContains(t, html, "<style")
	for _, script := range []string{"app.js", "actions.js"} {
		used := regexp.MustCompile(`\$\('([a-z-]+)'\)`).FindAllStringSubmatch(page(t)[script], -1)
		require.NotEmpty(t, used, script)
		for _, m := range used {
			require.True(t, ids[m[1]], "%s uses the id %s", script, m[1])
		}
	}
}

// TestPage_Contrast checks that text has the contrast with its background that WCAG 2.2 AA
// requires.
func TestPage_Contrast(t *testing.T) {
	css := page(t)["style.css"]
	light := variables(t, css, ":root {")
	dark := variables(t, css, `:root[data-theme="dark"] {`)
	pairs := [][2]string{
		{"text", "ground"}, {"text", "card"}, {"text", "soft"}, {"quiet", "ground"},
		{"quiet", "card"}, {"quiet", "soft"},
		{"accent", "card"}, {"accent", "ground"}, {"good", "good-soft"}, {"warn", "warn-soft"},
		{"bad", "bad-soft"}, {"good", "card"}, {"bad", "card"}, {"warn", "card"},
	}
	for i := range 8 {
		pairs = append(pairs, [2]string{"on-m", fmt.Sprint("m", i)})
	}
	for name, colours := range map[string]map[string]float64{"light": light, "dark": dark} {
		for _, p := range pairs {
			a, b := colours[p[0]], colours[p[1]]
			ratio := (math.Max(a, b) + .05) / (math.Min(a, b) + .05)
			require.GreaterOrEqual(t, ratio, 4.5, "%s: %s on %s", name, p[0], p[1])
		}
	}
}

// variables returns the luminance of each colour in a block of CSS, by variable name.
func variables(t *testing.T, css, block string) map[string]float64 {
	t.Helper()
	_, after, ok := strings.Cut(css, block)
	require.True(t, ok, block)
	body, _, _ := strings.Cut(after, "}")
	all := map[string]float64{}
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6})`).FindAllStringSubmatch(
		body, -1) {
		n, err := strconv.ParseUint(m[2], 16, 32)
		require.NoError(t, err)
		linear := func(c uint64) float64 {
			v := float64(c&0xFF) / 255
			if v <= .04045 {
				return v / 12.92
			}
			return math.Pow((v+.055)/1.055, 2.4)
		}
		all[m[1]] = .2126*linear(n>>16) + .7152*linear(n>>8) + .0722*linear(n)
	}
	require.Greater(t, len(all), 20)
	return all
}
