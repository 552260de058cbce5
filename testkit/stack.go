package testkit

import (
	"bufio"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// panicSite returns the first line of the user's code below a panic that a deferred function up the
// stack recovers, or the line of the panic if there is none. It is empty without a panic.
func panicSite() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking, first := false, ""
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.Function == "runtime.gopanic" {
			panicking, first = true, "" // the earliest panic is further down
			continue
		}
		if !panicking || strings.HasPrefix(f.Function, "runtime.") {
			continue
		}
		at := site(f.Function, f.File, f.Line)
		if first == "" {
			first = at
		}
		if own(f.Function) {
			return at
		}
	}
	return first
}

// site describes a line of code.
func site(function, file string, line any) string {
	return fmt.Sprintf("%s at %s:%v", path.Base(function), filepath.Base(file), line)
}

// own reports whether a function belongs neither to the standard library nor to Proto.Actor.
func own(function string) bool {
	first, _, _ := strings.Cut(function, "/")
	if !strings.Contains(function, "/") {
		first, _, _ = strings.Cut(function, ".")
	}
	if strings.HasPrefix(function, "github.com/asynkron/protoactor-go/") {
		return false
	}
	return strings.Contains(first, ".") || first == "main" ||
		mainModule() != "" && strings.HasPrefix(function, mainModule())
}

// mainModule returns the path of the module under test. Its first element may have no dot, like
// those of the standard library.
var mainModule = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Path
	}
	return ""
})

// goroutine is one goroutine of a dump.
type goroutine struct {
	id     string
	status string // "running", "sleep (durable)", …
	bubble string // empty outside bubbles
	stack  string
}

// dump returns all goroutines of the process.
func dump() (all []goroutine) {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	for text := range strings.SplitSeq(string(buf), "\n\n") {
		if g, ok := parseGoroutine(text); ok {
			all = append(all, g)
		}
	}
	return all
}

// self returns the calling goroutine, without its stack.
func self() goroutine {
	buf := make([]byte, 200)
	g, _ := parseGoroutine(string(buf[:runtime.Stack(buf, false)]))
	return g
}

// parseGoroutine parses "goroutine 7 [sleep (durable), 2 minutes, synctest bubble 3]:" and the
// lines after it.
func parseGoroutine(text string) (g goroutine, ok bool) {
	head, stack, _ := strings.Cut(text, "\n")
	rest, ok := strings.CutPrefix(head, "goroutine ")
	if !ok {
		return g, false
	}
	g.stack = stack
	g.id, rest, _ = strings.Cut(rest, " ")
	_, rest, _ = strings.Cut(rest, "[")
	rest, _, _ = strings.Cut(rest, "]")
	for i, part := range strings.Split(rest, ", ") {
		if b, is := strings.CutPrefix(part, "synctest bubble "); is {
			g.bubble = b
		} else if i == 0 {
			g.status = part
		}
	}
	return g, true
}

// site returns the first line of the user's code on the stack, or where the goroutine was created
// if there is none. It is empty if that is not the user's code either.
func (g goroutine) site() string {
	lines := bufio.NewScanner(strings.NewReader(g.stack))
	function := ""
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "\t") {
			function = strings.TrimPrefix(line, "created by ")
			function, _, _ = strings.Cut(function, " in goroutine ")
			if i := strings.LastIndex(function, "("); i > 0 && strings.HasSuffix(function, ")") {
				function = function[:i] // the arguments
			}
			continue
		}
		if base := path.Base(function); !own(function) || strings.HasPrefix(base, "testkit.") ||
			strings.HasPrefix(base, "simnet.") {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimSpace(line), " +0x")
		i := strings.LastIndex(file, ":")
		if i < 0 {
			continue
		}
		return site(function, file[:i], file[i+1:])
	}
	return ""
}
