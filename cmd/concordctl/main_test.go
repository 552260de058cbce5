package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/bbolt"
	rows "github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/memnet"
	"github.com/concord-go/concord/internal/simnet"
)

type items = crdt.ORSet[string]

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DialContext = memnet.Dial
	os.Exit(m.Run())
}

// serve returns the URL of a server, which listens in memory until the test ends.
func serve(t *testing.T, h http.Handler) string {
	server := &httptest.Server{Listener: memnet.Listen(), Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// site is a member with a cockpit.
type site struct {
	url     string
	store   memory.Store
	session *coordination.Session
	dd      *distributeddata.Replicator
	handler *cockpit.Handler
}

const secret = "hush"

func newSite(t *testing.T) *site {
	t.Helper()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	s := &site{store: memory.New()}
	var err error
	s.session, err = coordination.Open(s.store, coordination.Config{Owner: "me"})
	require.NoError(t, err)
	c := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
		s.dd, err = distributeddata.New(m.System, distributeddata.Config{MinMembers: 1})
		require.NoError(t, err)
	}})
	m := c.Member(0)
	require.NoError(t, s.dd.Ready(t.Context()))
	s.handler, err = cockpit.New(cockpit.Config{
		Actions: true, Authorize: cockpit.Password(secret), RequestsPerSecond: 1000,
		Values: []cockpit.Values{cockpit.ValuesOf(distributeddata.NewPrefix("cart/", items{}))},
	})
	require.NoError(t, err)
	s.handler.Show(cockpit.Sources{
		System: m.System, Sessions: map[string]*coordination.Session{"leases": s.session},
		Replicators: map[string]*distributeddata.Replicator{"shop": s.dd},
	})
	s.url = serve(t, s.handler)
	t.Cleanup(func() {
		s.handler.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, lifecycle.Of(m.System).Stop(ctx, func(ctx context.Context) error {
			return s.session.Close(ctx)
		}))
		c.Close()
	})
	return s
}

func (s *site) add(t *testing.T, key, element string) {
	t.Helper()
	_, err := distributeddata.NewKey(key, items{}).Update(t.Context(), s.dd,
		func(w *crdt.Writer, v *items) error {
			v.Add(w, element)
			return nil
		}, distributeddata.Local)
	require.NoError(t, err)
}

// ctlRun runs the program with the given arguments.
func ctlRun(t *testing.T, at string, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	env := map[string]string{"CONCORD_COCKPIT": at, "CONCORD_TOKEN": secret}
	status = run(t.Context(), args, func(name string) string { return env[name] }, &o, &e)
	return status, o.String(), e.String()
}

// fits fails the test unless each line fits a terminal and has no control characters.
func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		require.LessOrEqual(t, columns(line), 80, "%q", line)
		for _, r := range line {
			require.GreaterOrEqual(t, r, ' ', "%q moves the cursor", line)
		}
	}
}

func TestCommands_AskACockpit(t *testing.T) {
	s := newSite(t)
	s.add(t, "cart/1", "milk")
	s.add(t, "cart/"+strings.Repeat("long-", 60), "milk")
	s.add(t, "cart/\x1b[2Jhidden", "milk")
	for i := range 70 {
		s.add(t, fmt.Sprintf("order/%02d", i), "x")
	}
	other, err := coordination.Open(s.store, coordination.Config{Owner: "other"})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = other.Close(ctx) // its lease has been released
	})
	_, err = other.Lease("x").TryAcquire(t.Context())
	require.NoError(t, err)
	mine, err := s.session.Lease("mine").TryAcquire(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, mine.Release(context.Background())) }()

	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"status", exitOK, "is whole"},
		{"keys", exitOK, "and more"},
		{"keys -limit 0", exitOK, "order/69"},
		{"-limit 2 keys order/", exitOK, "order/01"},
		{"keys nothing", exitOK, "NAME"},
		{"get cart/1", exitOK, "milk"},
		{"get -replicator shop cart/1", exitOK, "milk"},
		{"get order/01", exitRefused, "not shown"},
		{"get cart/none", exitNone, "no entry"},
		{"get order/none", exitNone, "no entry"},
		{"get -replicator none cart/1", exitNone, "no replicator"},
		{"leases", exitOK, "held"},
		{"leases", exitOK, "mine"},
		{"leases x", exitOK, "other"},
		{"leases never", exitOK, "none"},
		{"leases -session none", exitNone, "no session"},
		{"shards", exitNone, "this member has no type of shards"},
		{"release x 7", exitInvalid, "nothing was done"},
		{"release x 0", exitUsage, "token"},
		{"release x", exitUsage, "usage"},
		{"release x 1", exitOK, "no longer holds"},
		{"leases x", exitOK, "none"},
		{"move cart 3 127.0.0.1:1", exitNone, "no type of shards"},
		{"move cart three 127.0.0.1:1", exitUsage, "must be a number"},
		{"move cart -1 127.0.0.1:1", exitUsage, "not defined"},
		{"move cart 3", exitUsage, "usage"},
		{"forget nobody:1", exitInvalid, "not counted"},
		{"forget -force nobody:1", exitInvalid, "not counted"},
		{"store list /nowhere", exitNone, "nowhere"},
		{"store burn /nowhere", exitUsage, "must be list, verify, export or import"},
		{"completion fish", exitUsage, "bash"},
		{"", exitUsage, "no command"},
		{"nonsense", exitUsage, "unknown command"},
		{"help", exitOK, "Exit status"},
		{"status extra", exitUsage, "usage"},
		{"status -limit -1", exitUsage, "negative"},
		{"status -o yaml", exitUsage, "table or json"},
		{"status -timeout 0s", exitUsage, "positive"},
		{"status -what", exitUsage, "not defined"},
		{"status -at ://", exitUsage, "-at"},
		{"status -at http://127.0.0.1:1", exitSilent, "no answer"},
		{"status -at " + s.url + "/wrong", exitSilent, "/wrong is not a cockpit: check -at"},
		{"get cart/none -at " + s.url + "/wrong", exitSilent, "/wrong is not a cockpit: check -at"},
	} {
		status, out, errs := ctlRun(t, s.url, strings.Fields(c.args)...)
		require.Equal(t, c.status, status, "%s: %s%s", c.args, out, errs)
		require.Contains(t, out+errs, c.want, c.args)
		fits(t, out)
	}
}

func TestCommands_JSONIsWhatTheCockpitSays(t *testing.T) {
	s := newSite(t)
	s.add(t, "cart/1", "milk")
	into := func(v any, args ...string) {
		status, out, errs := ctlRun(t, s.url, append(args, "-o", "json")...)
		require.Equal(t, exitOK, status, errs)
		require.NoError(t, json.Unmarshal([]byte(out), v), out)
	}
	var o api.Overview
	into(&o, "status")
	require.Equal(t, 1, o.Replicators[0].Keys)
	var keys []api.Key
	into(&keys, "keys")
	require.Equal(t, "cart/1", keys[0].Key)
	var leases []api.Lease
	into(&leases, "leases")
	require.Empty(t, leases)
	require.NotNil(t, leases, "an empty list must not be null")
}

// A cockpit whose member starts has no component yet.
func TestCommands_OfAMemberThatStarts(t *testing.T) {
	h, err := cockpit.New(cockpit.Config{Authorize: cockpit.Password(secret)})
	require.NoError(t, err)
	defer h.Close()
	at := serve(t, h)
	for args, want := range map[string]string{
		"status": "It is starting", "get x": "this member has no replicator",
		"keys": "this member has no replicator", "shards": "this member has no type of shards",
	} {
		_, out, errs := ctlRun(t, at, strings.Fields(args)...)
		require.Contains(t, out+errs, want, args)
	}
}

func TestMove_SendsTheRequestAndSaysWhatHappens(t *testing.T) {
	var asked []string
	at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(api.Page[api.Shard]{Version: 1, Items: []api.Shard{
				{Shard: 3, State: "awaiting the lease", Home: "192.168.100.101:54321",
					Requested: "192.168.100.102:54321", Since: new(time.Now().Add(-time.Hour)),
					Waiting: 12},
				{Shard: 4, State: "active", Home: "192.168.100.101:54321",
					Requested: "192.168.100.101:54321", Token: 1234567, Entities: 2000},
			}})
			return
		}
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.URL.Path+" "+r.Header.Get("X-Concord-Action")+" "+string(body))
		fmt.Fprint(w, `{"version":1,"requested":true}`)
	}))
	status, out, errs := ctlRun(t, at, "move", "cart", "3", "b:1")
	require.Equal(t, exitOK, status, errs)
	require.Contains(t, out, "Shard 3 of cart will move to b:1")
	fits(t, out)
	status, out, errs = ctlRun(t, at, "move", "cart", "3", "any")
	require.Equal(t, exitOK, status, errs)
	require.Contains(t, out, "any member")
	status, out, errs = ctlRun(t, at, "move", "cart", "3", "b:1", "-o", "json")
	require.Equal(t, exitOK, status, errs)
	require.Contains(t, out, `"requested": true`)
	require.Equal(t, []string{
		`/api/v1/actions/move 1 {"type":"cart","shard":3,"to":"b:1"}`,
		`/api/v1/actions/move 1 {"type":"cart","shard":3,"to":""}`,
		`/api/v1/actions/move 1 {"type":"cart","shard":3,"to":"b:1"}`,
	}, asked)

	status, out, errs = ctlRun(t, at, "shards")
	require.Equal(t, exitOK, status, errs)
	require.Equal(t, 2, strings.Count(out, "192.168.100.101:54321"))
	require.Contains(t, out, "Shard 3 was requested to be on 192.168.100.102:54321.")
	require.NotContains(t, out, "Shard 4 was requested", "it is there")
	require.Contains(t, out, "1h0m0s")
	require.Contains(t, out, "1234567")
	fits(t, out)
}

func TestStatus_FailsIfTheClusterIsNotWhole(t *testing.T) {
	at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Overview{
			Cluster: api.Cluster{Name: "c", Self: "a:1", Members: []api.Member{
				{Address: "a:1", Self: true}}, Lost: []string{"b:1"}},
			Problems: []api.Problem{
				{Severity: "bad", What: "missing: b:1",
					Do: strings.Repeat("Start it again. ", 20)}},
		})
	}))
	status, out, errs := ctlRun(t, at, "status")
	require.Equal(t, exitWrong, status, errs)
	require.Contains(t, out, "has missing members")
	require.Contains(t, out, "MISSING")
	require.Contains(t, errs, "concordctl: 1 problem: missing: b:1")
	fits(t, out)
	status, out, _ = ctlRun(t, strings.TrimPrefix(at, "http://"), "status")
	require.Equal(t, exitWrong, status, "-at host:port")
	require.Contains(t, out, "has missing members")
}

func TestCommands_WhatIsNoCockpit(t *testing.T) {
	for answer, want := range map[string]int{"{": exitSilent, "<html>": exitSilent} {
		at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, answer)
		}))
		status, _, errs := ctlRun(t, at, "status")
		require.Equal(t, want, status, errs)
	}
	for code, want := range map[int]int{401: exitRefused, 403: exitRefused, 404: exitSilent,
		409: exitSilent, 500: exitSilent, 302: exitSilent} {
		at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(code)
			fmt.Fprint(w, "not JSON \x1b[2J")
		}))
		status, _, errs := ctlRun(t, at, "status")
		require.Equal(t, want, status, errs)
		require.Contains(t, errs, at, "which server said this")
		require.Contains(t, errs, fmt.Sprint(code))
		require.NotContains(t, errs, "\x1b")
	}
}

// What others have written moves no cursor, and a password in -at is shown to nobody.
func TestOutput_IsVisibleAndSaysNoPassword(t *testing.T) {
	const event = `{"seq":1,"at":"2026-01-01T00:00:00Z","kind":"log","text":"a\u001b[2Jb"}`
	at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"member":"a\u001b[2J\u202eb","events":[`+event+`]}`)
	}))
	for _, form := range []string{"table", "json"} {
		_, out, errs := ctlRun(t, at, "-o", form, "status")
		require.NotContains(t, out+errs, "\x1b", form)
		require.NotContains(t, out+errs, "\u202e", form)
	}
	for _, at := range []string{"http://me:letmein@127.0.0.1:1", "me:letmein@127.0.0.1:1",
		"http://me:letmein@\x01"} {
		status, out, errs := ctlRun(t, at, "status")
		require.NotZero(t, status)
		require.NotContains(t, out+errs, "letmein", at)
	}

	var b bytes.Buffer
	v := &visible{out: &b, json: true}
	text := "é\x1b𝄞\u202e\n"
	for i := range len(text) { // characters may arrive in pieces
		_, err := v.Write([]byte(text[i : i+1]))
		require.NoError(t, err)
	}
	require.Equal(t, "é\\u001b𝄞\\u202e\n", b.String())
}

func TestWatch_PrintsEventsOnceAndEndsWithTheContext(t *testing.T) {
	s := newSite(t)
	log := slog.New(s.handler.Log(slog.DiscardHandler))
	log.Info("first of all")
	ctx, cancel := context.WithCancel(t.Context())
	out := &signalled{steps: []step{
		{"first of all", func() { log.Warn("second thing") }},
		{"second thing", cancel},
	}}
	stuck := time.AfterFunc(20*time.Second, cancel)
	defer stuck.Stop()
	env := map[string]string{"CONCORD_COCKPIT": s.url, "CONCORD_TOKEN": secret}
	require.Equal(t, exitOK, run(ctx, []string{"watch"}, func(n string) string {
		return env[n]
	}, out, out))
	require.Equal(t, 1, strings.Count(out.text(), "first of all"))
	require.Contains(t, out.text(), "second thing")
	fits(t, out.text())

	s.handler.Close()
	status, _, errs := ctlRun(t, s.url, "watch")
	require.Equal(t, exitSilent, status, errs)
}

func TestStore_LooksIntoADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := bbolt.Open(dir, bbolt.Config{})
	require.NoError(t, err)
	b := &rows.Batch{}
	b.Put("H", []byte("header"))
	b.Put("d\x02cart\xffapath1", []byte("milk-milk-milk"))
	b.Put("d\x02cart\xffapath2", []byte("bread"))
	require.NoError(t, s.Commit(t.Context(), b))
	require.NoError(t, s.Close())
	for what, want := range map[string]string{"list": "cart", "verify": "3 rows are intact",
		"export": `"kind":"atom"`} {
		status, out, errs := ctlRun(t, "", "store", what, dir)
		require.Equal(t, exitOK, status, "%s: %s%s", what, out, errs)
		require.Contains(t, out, want)
		if what != "export" {
			fits(t, out)
		}
	}
	_, out, _ := ctlRun(t, "", "store", "verify", dir, "-o", "json")
	require.Contains(t, out, `"sound": true`)

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	damaged := 0
	for _, name := range files {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		if i := bytes.Index(raw, []byte("milk-milk")); i >= 0 {
			raw[i] ^= 1
			require.NoError(t, os.WriteFile(name, raw, 0o600))
			damaged++
		}
	}
	require.Positive(t, damaged)
	anchor := filepath.Join(dir, "ANCHOR")
	raw, err := os.ReadFile(anchor)
	require.NoError(t, err)
	copy(raw[4096:], make([]byte, 4200)) // both numbers
	require.NoError(t, os.WriteFile(anchor, raw, 0o600))
	for range 2 { // it is not mended by verifying
		status, out, errs := ctlRun(t, "", "store", "verify", dir)
		require.Equal(t, exitWrong, status, "%s%s", out, errs)
		require.Contains(t, out, "damaged")
		require.Contains(t, out, "missing")
		fits(t, out)
		after, err := os.ReadFile(anchor)
		require.NoError(t, err)
		require.Equal(t, raw, after)
	}
}

func TestStore_BringsAnExportBack(t *testing.T) {
	from, file := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "rows.json")
	s, err := bbolt.Open(from, bbolt.Config{})
	require.NoError(t, err)
	b := &rows.Batch{}
	b.Put("H", []byte("header"))
	b.Put("d\x02cart\xffapath1", []byte("milk"))
	require.NoError(t, s.Commit(t.Context(), b))
	require.NoError(t, s.Close())
	_, text, _ := ctlRun(t, "", "store", "export", from)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))

	into := filepath.Join(t.TempDir(), "into")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"import", file, into, "badger"}, exitOK, "2 rows were imported"},
		{[]string{"verify", into}, exitOK, "2 rows are intact"},
		{[]string{"import", file, into, "badger"}, exitInvalid, "is not empty"},
		{[]string{"import", file, from, "bbolt"}, exitInvalid, "is not empty"},
		{[]string{"import", file, into, "stone"}, exitInvalid, "must be badger or bbolt"},
		{[]string{"import", file + "x", into, "bbolt"}, exitNone, "no such file"},
		{[]string{"import", file, into}, exitUsage, "usage: concordctl store import FILE DIR"},
		{[]string{"verify", into, "badger"}, exitUsage, "usage: concordctl store verify DIR"},
	} {
		status, out, errs := ctlRun(t, "", append([]string{"store"}, c.args...)...)
		require.Equal(t, c.status, status, "%v: %s%s", c.args, out, errs)
		require.Contains(t, out+errs, c.want)
	}
	_, again, _ := ctlRun(t, "", "store", "export", into)
	require.Equal(t, text, again)
}

func TestHelp_FitsAndNamesEverything(t *testing.T) {
	status, out, _ := ctlRun(t, "", "-help")
	require.Equal(t, exitOK, status)
	fits(t, out)
	doc, err := os.ReadFile("main.go")
	require.NoError(t, err)
	comment, _, _ := strings.Cut(string(doc), "package main")
	for _, cmd := range commands() {
		require.Contains(t, out, cmd.name)
		require.Contains(t, comment, "concordctl "+cmd.name, "the comment of the program")
	}
	for status := range exitInvalid + 1 {
		require.Contains(t, comment, fmt.Sprintf("\t%d  ", status))
	}
}
