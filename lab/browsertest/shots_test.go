//go:build browser

package browsertest

import (
	"flag"
	"path/filepath"
	"testing"
	"time"
)

var (
	pictures = flag.String("pictures", "", "directory for the screenshots of the docs")
	of       = flag.String("of", "",
		"URL of a cockpit for the screenshots; default: a quickstart that the test starts")
	fault = flag.String("fault", "",
		"name of one screenshot of what the cockpit shows now, which is a fault")
)

// shots takes the screenshots for the docs.
func shots(t *testing.T, b *browser, url, dir string) {
	for _, s := range []struct {
		name string
		media
	}{
		{"cockpit-light.png", media{1280, 1500, false, true}},
		{"cockpit-dark.png", media{1280, 1500, true, true}},
	} {
		p := b.open(url, s.media)
		p.until(10*time.Second,
			"document.querySelector('#verdict').textContent.includes('whole') && document.querySelectorAll('#entries tr').length > 2")
		time.Sleep(6 * time.Second) // fills the line charts
		fits(t, p, s.width)
		p.picture(filepath.Join(dir, s.name))
		p.do("Page.close", nil, nil)
	}
}

func TestPictures(t *testing.T) {
	if *of == "" || *pictures == "" {
		return // TestPage takes the screenshots from its own cluster
	}
	b := startBrowser(t)
	if *fault == "" {
		shots(t, b, *of, *pictures)
		return
	}
	p := b.open(*of, media{1000, 860, false, true})
	p.until(10*time.Second, "document.querySelectorAll('#events li, #events tr').length > 0")
	time.Sleep(3 * time.Second)
	p.picture(filepath.Join(*pictures, *fault))
}
