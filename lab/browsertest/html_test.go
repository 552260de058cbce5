//go:build browser

package browsertest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var checker = flag.String("vnu", "", "path of vnu.jar, the Nu Html Checker")

// documents are HTML, CSS and SVG files to be validated.
type documents struct{ dir string }

// served adds the files of the page as the node serves them.
func (d documents) served(t *testing.T, url string) {
	t.Helper()
	for path, name := range map[string]string{"": "served.html", "style.css": "style.css",
		"icon.svg": "icon.svg"} {
		res, err := http.Get(url + path)
		require.NoError(t, err)
		raw, err := io.ReadAll(res.Body)
		res.Body.Close()
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode, path)
		require.NoError(t, os.WriteFile(filepath.Join(d.dir, name), raw, 0o600))
	}
}

// rendered adds the present DOM of a page.
func (d documents) rendered(t *testing.T, p *page, name string) {
	t.Helper()
	text := "<!doctype html>\n" + p.eval("document.documentElement.outerHTML")
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, name+".html"), []byte(text), 0o600))
}

// validate checks all documents with the Nu Html Checker, the validator of the W3C. It checks the
// HTML with its ARIA roles, the CSS and the SVG. The checker must also reject a wrong document,
// since one that does not work accepts everything.
func (d documents) validate(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, *checker,
		"NOT TESTED: the HTML is not validated without -vnu; run make cockpit-test")
	wrong := filepath.Join(d.dir, "wrong.html")
	require.NoError(t, os.WriteFile(wrong,
		[]byte("<!doctype html><html lang=en><title>wrong</title><p><table><ul><b></ul>"), 0o600))
	cmd := exec.Command("java", "-jar", *checker, "--stdout", "--exit-zero-always", "--format",
		"json", "--also-check-css", "--also-check-svg", d.dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	require.NoError(t, err, "NOT TESTED: the HTML is not validated: %s", &stderr)
	var out struct {
		Messages []struct {
			Type, SubType, URL, Message, Extract string
			LastLine                             int
		}
	}
	require.NoError(t, json.Unmarshal(raw, &out), "%s%s", raw, &stderr)
	found, works := []string{}, false
	for _, m := range out.Messages {
		if strings.HasSuffix(m.URL, "/wrong.html") {
			works = works || m.Type == "error"
			continue
		}
		found = append(found, fmt.Sprintf("%s:%d: %s %s: %s: %s", filepath.Base(m.URL), m.LastLine,
			m.Type, m.SubType, m.Message, m.Extract))
	}
	require.True(t, works, "the checker accepts a wrong document: %s", raw)
	require.Empty(t, found, "%s", strings.Join(found, "\n"))
}
