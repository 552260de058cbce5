package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// maxListed bounds the leases of a session, and the shards of a type, that a bundle lists.
const maxListed = 10_000

// bundle writes what somebody else needs to help into one zip file: status, events, leases, shards,
// metrics and versions of each member that is named, and the configuration file without secrets.
// The token is sent to the cockpits that the command line names, and to no others.
func bundle(ctx context.Context, c *ctl, args []string) (err error) {
	config, err := withoutSecrets(c.config)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fails(exitUsage, "%w", err)
	}
	b := &bundler{zip: zip.NewWriter(out)}
	for i, at := range append([]string{c.at}, args[1:]...) {
		one := *c
		one.limit, one.at = maxListed, at
		one.client = newClient(one.options, c.token)
		b.member(ctx, &one, fmt.Sprint(i+1))
	}
	if config != nil {
		b.add("concord.yaml", config)
	}
	b.add("README.txt", b.readme())
	err = errors.Join(b.err, b.zip.Close(), out.Close())
	if err != nil || b.files == 0 {
		err = errors.Join(err, os.Remove(args[0]))
	}
	switch {
	case err != nil:
		return err
	case b.files == 0:
		return fails(exitSilent, "nothing was written: %w", errors.Join(b.missing...))
	}
	fmt.Fprintf(c.out, "%s has %s of %s. It names entries, leases and addresses.\n",
		printable(args[0]), plural(b.files, "file"), plural(len(args), "member"))
	if len(b.missing) > 0 {
		return fails(exitWrong, "some is missing: %w", errors.Join(b.missing...))
	}
	return nil
}

// bundler writes a bundle.
type bundler struct {
	zip     *zip.Writer
	files   int     // of members
	missing []error // what could not be asked
	err     error   // the file could not be written
}

// member adds what the cockpit of one member says, in a directory of its own.
func (b *bundler) member(ctx context.Context, c *ctl, dir string) {
	o, err := ask[api.Overview](ctx, c, "overview", nil)
	if err != nil {
		b.missing = append(b.missing, fmt.Errorf("%s: %w", c.named, err))
		return
	}
	if o.Cluster.Self != "" {
		dir += "-" + fileName(o.Cluster.Self)
	}
	b.keep(c, dir, "overview.json", asText(o), nil)
	events, err := ask[json.RawMessage](ctx, c, "events", url.Values{"limit": {"256"}})
	b.keep(c, dir, "events.json", asText(events), err)
	for i, s := range o.Sessions {
		all, _, err := pages[json.RawMessage](ctx, c, "leases", url.Values{"session": {s.Name}})
		b.keep(c, dir, fmt.Sprintf("leases-%d.json", i+1), asText(all), err)
	}
	for i, s := range o.Shards {
		all, _, err := pages[json.RawMessage](ctx, c, "shards", url.Values{"type": {s.Type}})
		b.keep(c, dir, fmt.Sprintf("shards-%d.json", i+1), asText(all), err)
	}
	if o.Node.Metrics {
		text, err := c.metrics(ctx)
		b.keep(c, dir, "metrics.txt", text, err)
	}
}

// metrics returns the response of the endpoint of the same name.
func (c *ctl) metrics(ctx context.Context) ([]byte, error) {
	ctx, cancel := c.wait(ctx)
	defer cancel()
	res, err := c.open(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, maxAnswer))
}

// keep adds a file of a member, or records why it is missing.
func (b *bundler) keep(c *ctl, dir, name string, content []byte, err error) {
	if err != nil {
		b.missing = append(b.missing, fmt.Errorf("%s: %s: %w", c.named, name, err))
		return
	}
	b.files++
	b.add(dir+"/"+name, content)
}

func (b *bundler) add(name string, content []byte) {
	w, err := b.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate,
		Modified: time.Now()})
	if err == nil {
		_, err = w.Write(content)
	}
	b.err = errors.Join(b.err, err)
}

func (b *bundler) readme() []byte {
	var t strings.Builder
	fmt.Fprintf(&t, "Written by concordctl %s at %s.\n", version(),
		time.Now().UTC().Format(time.RFC3339))
	t.WriteString("One directory for each member that answered. docs/cockpit.md describes the JSON.\n")
	for _, err := range b.missing {
		fmt.Fprintf(&t, "Missing: %s\n", printable(err.Error()))
	}
	return []byte(t.String())
}

// version returns the version of this program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	of := info.Main.Version
	if i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "vcs.revision"
	}); i >= 0 {
		of += " " + info.Settings[i].Value
	}
	return of
}

func asText(v any) []byte {
	text, _ := json.MarshalIndent(v, "", "  ") // what has just been decoded
	return append(text, '\n')
}

// fileName returns a name without characters that mean something in a path.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' ||
			r == '-' {
			return r
		}
		return '_'
	}, s)
}
