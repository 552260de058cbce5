// Command cache caches values that are expensive to compute and forgets unused ones. The pages of a
// site are one entry, which all members hold. The entry expires when no member has read or changed
// it for a while.
//
//	go run ./examples/cache
//
//	member 1 renders docs/start
//	member 2 renders blog/first
//	member 3 has docs/start
//	docs is read now and then, blog is not
//	forgotten: blog
//	member 2 has docs/start
//	nobody reads
//	forgotten: docs
//	member 1 renders docs/start
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

// pages are the pages of a site, by path. If two members render a page at the same time, the later
// write wins.
type pages = crdt.LWWMap[string, string]

// Sites has an entry for each site. Each entry expires as a whole: reading one page keeps all pages
// of the site.
var Sites = distributeddata.NewPrefix("pages-of-", pages{})

// forgetAfter is the time after which an unused site expires. A real cache uses minutes or hours.
const forgetAfter = 2 * time.Second

// config is the same at all members. Their clocks must not differ by more than ClockSkew.
func config(int) distributeddata.Config {
	return distributeddata.Config{
		Expiry:    map[string]time.Duration{Sites.String() + "*": forgetAfter},
		ClockSkew: 50 * time.Millisecond, HeartbeatInterval: 100 * time.Millisecond,
	}
}

// page returns a page, and whether it had to be rendered. A hit needs only a local read.
func page(ctx context.Context, dd *distributeddata.Replicator, site,
	path string) (text string, rendered bool, err error) {
	cached, err := Sites.Key(site).Get(ctx, dd)
	if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
		return "", false, err
	}
	if text, ok := cached.Get(path); ok {
		return text, false, nil
	}
	text = "<h1>" + site + " " + path + "</h1>"
	_, err = Sites.Key(site).Update(ctx, dd, func(w *crdt.Writer, v *pages) error {
		v.Set(w, path, text)
		return nil
	}, distributeddata.Local)
	return text, true, err
}

func main() {
	if err := three.Run(context.Background(), os.Stdout, config, run); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ask := func(member int, site, path string) error {
		_, rendered, err := page(ctx, c.DD[member-1], site, path)
		what := "has"
		if rendered {
			what = "renders"
		}
		fmt.Fprintf(out, "member %d %s %s/%s\n", member, what, site, path)
		time.Sleep(100 * time.Millisecond) // time for the others to receive it
		return err
	}
	forgotten := make(chan string, 1)
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		for ch := range Sites.Changes(ctx, c.DD[2]) {
			if ch.Expired {
				site, _ := Sites.Rest(ch.Key)
				forgotten <- site
			}
		}
	}()

	if err := errors.Join(ask(1, "docs", "start"), ask(2, "blog", "first"),
		ask(3, "docs", "start")); err != nil {
		return err
	}
	fmt.Fprintln(out, "docs is read now and then, blog is not")
	if err := readUntil(ctx, out, c.DD[0], "docs", forgotten); err != nil {
		return err
	}
	if err := ask(2, "docs", "start"); err != nil {
		return err
	}
	fmt.Fprintln(out, "nobody reads")
	select {
	case site := <-forgotten:
		fmt.Fprintln(out, "forgotten:", site)
	case <-ctx.Done():
		return ctx.Err()
	}
	return ask(1, "docs", "start")
}

// readUntil reads a site until another one expires.
func readUntil(ctx context.Context, out io.Writer, dd *distributeddata.Replicator, site string,
	forgotten <-chan string) error {
	for {
		select {
		case other := <-forgotten:
			fmt.Fprintln(out, "forgotten:", other)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(forgetAfter / 10):
			if _, err := Sites.Key(site).Get(ctx, dd); err != nil {
				return err
			}
		}
	}
}
