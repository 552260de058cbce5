//go:build browser

package browsertest

import (
	"strconv"
	"time"
)

// key is a key of the keyboard.
type key struct {
	name, code, text string
	number           int
	shift            bool
}

var (
	tab     = key{"Tab", "Tab", "", 9, false}
	backTab = key{"Tab", "Tab", "", 9, true}
	enter   = key{"Enter", "Enter", "\r", 13, false}
	space   = key{" ", "Space", " ", 32, false}
	escape  = key{"Escape", "Escape", "", 27, false}
	down    = key{"ArrowDown", "ArrowDown", "", 40, false}
)

// press presses and releases keys.
func (p *page) press(keys ...key) {
	p.t.Helper()
	for _, k := range keys {
		m := map[string]any{"type": "rawKeyDown", "key": k.name, "code": k.code,
			"windowsVirtualKeyCode": k.number}
		if k.text != "" {
			m["type"], m["text"] = "keyDown", k.text
		}
		if k.shift {
			m["modifiers"] = 8
		}
		p.do("Input.dispatchKeyEvent", m, nil)
		m["type"] = "keyUp"
		delete(m, "text")
		p.do("Input.dispatchKeyEvent", m, nil)
	}
}

// write types text into the element with the focus.
func (p *page) write(text string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": text}, nil)
}

// reach presses Tab, or Shift and Tab, until the focus is on an element that matches a selector.
func (p *page) reach(with key, selector string) {
	p.t.Helper()
	for range 200 {
		if p.focused(selector) {
			return
		}
		p.press(with)
	}
	p.t.Fatalf("the keyboard does not reach %s", selector)
}

func (p *page) focused(selector string) bool {
	p.t.Helper()
	return p.eval("document.activeElement.matches("+strconv.Quote(selector)+")") == "true"
}

// opened waits until the dialog of an action is open.
func (p *page) opened() {
	p.t.Helper()
	p.until(5*time.Second, "document.querySelector('#act').open")
}

// said waits until the dialog is closed and the page shows the result of an action.
func (p *page) said(text string) {
	p.t.Helper()
	p.until(20*time.Second, "!document.querySelector('#act').open && document.querySelector('#result').textContent.includes("+strconv.Quote(text)+")")
}
