//go:build browser

package browsertest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var chromium = flag.String("chromium", "", "path of Chromium or Chrome")

// browser is a Chromium process. The tests control it through pipes with the DevTools protocol.
type browser struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser

	mu     sync.Mutex
	n      int
	calls  map[int]chan reply
	events []event
	gone   chan struct{}
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// event is a notification from the browser.
type event struct {
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// startBrowser starts Chromium. It fails the test if there is none.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	require.NotEmpty(t, *chromium, "NOT TESTED: no -chromium; run make cockpit-test")
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	b := &browser{t: t, in: ours, calls: map[int]chan reply{}, gone: make(chan struct{})}
	b.cmd = exec.Command(*chromium, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--no-default-browser-check", "--disable-extensions",
		"--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		"--user-data-dir="+t.TempDir(), "about:blank")
	b.cmd.ExtraFiles = []*os.File{theirs, to}
	require.NoError(t, b.cmd.Start())
	theirs.Close()
	to.Close()
	go b.read(from)
	t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		<-b.gone
		_ = b.cmd.Wait()
		ours.Close()
		from.Close()
	})
	return b
}

func (b *browser) read(from io.Reader) {
	defer close(b.gone)
	in := bufio.NewReader(from)
	for {
		raw, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID int `json:"id"`
			reply
			event
		}
		if json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m) != nil {
			return
		}
		b.mu.Lock()
		if c := b.calls[m.ID]; m.ID != 0 && c != nil {
			delete(b.calls, m.ID)
			c <- m.reply
		} else if m.Method != "" {
			b.events = append(b.events, m.event)
		}
		b.mu.Unlock()
	}
}

// call sends a command and waits for its reply. An empty session addresses the browser, another one
// a page.
func (b *browser) call(session, method string, params, into any) error {
	answer := make(chan reply, 1)
	b.mu.Lock()
	b.n++
	n := b.n
	b.calls[n] = answer
	b.mu.Unlock()
	if params == nil {
		params = struct{}{}
	}
	m := map[string]any{"id": n, "method": method, "params": params}
	if session != "" {
		m["sessionId"] = session
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(raw, 0)); err != nil {
		return err
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(r.Result, into)
	case <-b.gone:
		return errors.New("the browser exited")
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s: no answer", method)
	}
}

// page is an open window.
type page struct {
	*browser
	session string
	t       *testing.T // fails if a call does
}

// in returns the same page for a subtest.
func (p *page) in(t *testing.T) *page { return &page{p.browser, p.session, t} }

// media describes the emulated viewport and user preferences.
type media struct {
	width, height int
	dark, still   bool
}

// open opens a URL in a new window.
func (b *browser) open(url string, m media) *page {
	b.t.Helper()
	var target struct{ TargetID string }
	// Each page has its own window, because a tab in the background does not draw.
	require.NoError(b.t, b.call("", "Target.createTarget", map[string]any{"url": "about:blank",
		"newWindow": true}, &target))
	var at struct{ SessionID string }
	require.NoError(b.t, b.call("", "Target.attachToTarget", map[string]any{
		"targetId": target.TargetID, "flatten": true}, &at))
	p := &page{b, at.SessionID, b.t}
	for _, domain := range []string{"Page.enable", "Runtime.enable", "Network.enable", "Log.enable",
		"Accessibility.enable"} {
		p.do(domain, nil, nil)
	}
	// as in the window in front
	p.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	p.do("Emulation.setScrollbarsHidden", map[string]any{"hidden": true}, nil)
	p.look(m)
	p.do("Page.navigate", map[string]any{"url": url}, nil)
	return p
}

func (p *page) do(method string, params, into any) {
	p.t.Helper()
	require.NoError(p.t, p.call(p.session, method, params, into))
}

func (p *page) look(m media) {
	scheme, motion := "light", "no-preference"
	if m.dark {
		scheme = "dark"
	}
	if m.still {
		motion = "reduce"
	}
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": m.width, "height": m.height,
		"deviceScaleFactor": 1, "mobile": false}, nil)
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion",
			"value": motion},
	}}, nil)
}

// eval returns the value of a JavaScript expression, as text.
func (p *page) eval(expression string) string {
	p.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Text string }
	}
	p.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true,
		"awaitPromise": true}, &out)
	require.Nil(p.t, out.ExceptionDetails, "%s: %+v", expression, out.ExceptionDetails)
	return fmt.Sprint(out.Result.Value)
}

// number returns the value of a JavaScript expression, as a number.
func (p *page) number(expression string) float64 {
	p.t.Helper()
	n, err := strconv.ParseFloat(p.eval(expression), 64)
	require.NoError(p.t, err, expression)
	return n
}

// until waits until a JavaScript expression is true, and returns the time that took.
func (p *page) until(within time.Duration, expression string) time.Duration {
	p.t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	for p.eval("(() => { try { return Boolean("+expression+
		") } catch { return false } })()") != "true" {
		select {
		case <-ctx.Done():
			p.t.Fatalf("not true after %v: %s\n%s", within, expression,
				p.eval("document.body.innerText"))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return time.Since(begun)
}

// picture writes a screenshot to a file.
func (p *page) picture(name string) {
	p.t.Helper()
	var out struct{ Data string }
	p.do("Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": false}, &out)
	raw, err := base64.StdEncoding.DecodeString(out.Data)
	require.NoError(p.t, err)
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(p.t, err)
	var small bytes.Buffer
	require.NoError(p.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small,
		fewColours(img)))
	require.NoError(p.t, os.WriteFile(name, small.Bytes(), 0o644))
}

// fewColours returns img reduced to its 256 most frequent colours, which makes the file two thirds
// smaller.
func fewColours(img image.Image) image.Image {
	seen := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	box := img.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			seen[at(x, y)]++
		}
	}
	commonest := slices.SortedFunc(maps.Keys(seen), func(a, b color.RGBA) int {
		return cmp.Compare(seen[b], seen[a])
	})
	palette := color.Palette{}
	for _, c := range commonest[:min(256, len(commonest))] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for c := range seen {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(box, palette)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	return out
}

// seen returns the parameters of all events of a method so far, of this page.
func (p *page) seen(method string) (all []json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Session == p.session && e.Method == method {
			all = append(all, e.Params)
		}
	}
	return all
}
