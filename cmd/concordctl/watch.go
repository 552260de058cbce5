package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// maxFrame bounds one event of a stream, in bytes.
const maxFrame = 8 << 20

// watch prints events until ctx ends or the stream ends.
func watch(ctx context.Context, c *ctl, _ []string) error {
	res, err := c.endpoint(ctx, http.MethodGet, "stream", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	w := &watcher{ctl: c}
	err = frames(res.Body, w.frame)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fails(exitSilent, "the stream ended: %w", err)
}

// frames calls f for each server-sent event.
func frames(in io.Reader, f func(name string, data []byte) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxFrame)
	name := ""
	for lines.Scan() {
		line := lines.Text()
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			name = v
		} else if v, ok := strings.CutPrefix(line, "data: "); ok {
			if err := f(name, []byte(v)); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// watcher prints each event and each problem once.
type watcher struct {
	*ctl
	seq      uint64
	problems map[string]bool
}

func (w *watcher) frame(name string, data []byte) error {
	if w.output == "json" {
		_, err := fmt.Fprintf(w.out, "{\"event\":%q,\"data\":%s}\n", name, data)
		return err
	}
	switch name {
	case "events":
		var all []api.Event
		if err := json.Unmarshal(data, &all); err != nil {
			return err
		}
		for _, e := range all {
			if e.Seq > w.seq {
				w.seq = e.Seq
				w.say(e.At, e.Level, e.Text)
			}
		}
	case "problems":
		var all []api.Problem
		if err := json.Unmarshal(data, &all); err != nil {
			return err
		}
		w.solved(all)
	}
	return nil
}

// solved prints new problems, and problems that no longer exist.
func (w *watcher) solved(all []api.Problem) {
	now := map[string]bool{}
	for _, p := range all {
		now[p.What] = true
		if !w.problems[p.What] {
			w.say(time.Now(), "problem", p.What+" → "+p.Do)
		}
	}
	for what := range w.problems {
		if !now[what] {
			w.say(time.Now(), "solved", what)
		}
	}
	w.problems = now
}

func (w *watcher) say(at time.Time, level, text string) {
	wrap(w.out, fmt.Sprintf("%s  %-7s  ", at.Local().Format(time.TimeOnly), level),
		"                   ", text)
}
