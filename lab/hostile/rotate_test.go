package hostile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/testkit/pki"
)

// reread is longer than a member may take to notice that a file has changed.
const reread = 1100 * time.Millisecond

// TestRotate_TheSecretIsReplacedUnderLoad replaces the secret of three members in the rounds of
// docs/security.md, a member at a time, while each of them writes and asks. Members are restarted
// in between, so that both secrets open connections. Nothing fails, and nothing is refused until a
// member comes that has only the old secret.
func TestRotate_TheSecretIsReplacedUnderLoad(t *testing.T) {
	const before, after = "the secret of this cluster", "the next secret of this cluster"
	w := newApart(t, secretMode)
	write := func(secrets ...string) func(*process) {
		return func(p *process) {
			replace(t, p.spec.Secret, []byte(strings.Join(secrets, "\n")+"\n"))
		}
	}
	w.round("both are accepted", write(before, after))
	w.restart(0)
	w.round("the new one is used", write(after, before))
	w.restart(1)
	w.round("the old one is gone", write(after))
	w.restart(2)
	w.refusedNothing()
	for _, p := range w.members {
		require.Empty(t, p.With("level=WARN"))
	}

	old := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(old, []byte(before+"\n"), 0o600))
	late := w.members[2].spec
	late.Secret = old
	w.stop(2)
	defer w.launch(late, w.members[2].address).Kill()
	await(t, func() error {
		s, err := w.members[0].status()
		switch {
		case err != nil:
			return err
		case len(s.IDs) != size-1:
			return fmt.Errorf("members %v", s.IDs)
		case w.members[0].With("do both have the same secret") == nil:
			return errors.New("no line about the other secret")
		}
		return nil
	})
}

// TestRotate_TheAuthorityIsReplacedUnderLoad is the same with TLS: first the members trust both
// authorities, then each gets a certificate of the new one, then the old one goes.
func TestRotate_TheAuthorityIsReplacedUnderLoad(t *testing.T) {
	w := newApart(t, tlsMode)
	after, err := pki.NewAuthority("after")
	require.NoError(t, err)
	trust := func(pem ...[]byte) func(*process) {
		return func(p *process) { replace(t, p.spec.TLS.Authorities[0], slices.Concat(pem...)) }
	}
	w.round("both are trusted", trust(w.ca.PEM(), after.PEM()))
	w.restart(0)
	w.round("new certificates", func(p *process) {
		cert, key, err := after.WriteMember(filepath.Dir(p.spec.TLS.Cert), fmt.Sprint(p.spec.Port),
			pki.Member{Hosts: []string{"127.0.0.1"}, Addresses: []string{p.address}})
		require.NoError(t, err)
		require.Equal(t, node.TLSFiles(cert, key, p.spec.TLS.Authorities...), p.spec.TLS)
	})
	w.restart(1)
	w.round("the old one is gone", trust(after.PEM()))
	w.restart(2)
	w.refusedNothing()
}

// replace gives a file another content at once: its readers never see a part of that.
func replace(t *testing.T, file string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".next", content, 0o600))
	require.NoError(t, os.Rename(file+".next", file))
}

// newApart is like newWorld, with files of its own for each member.
func newApart(t *testing.T, mode string) *world {
	return newCluster(t, &world{mode: mode, cluster: "rotate", dir: t.TempDir(), apart: true}, nil)
}

// round does one thing to each member, one after the other, while all of them work.
func (w *world) round(what string, do func(*process)) {
	w.t.Helper()
	for i, p := range w.members {
		do(p)
		for begun := time.Now(); time.Since(begun) < reread; time.Sleep(20 * time.Millisecond) {
			require.NoError(w.t, w.well(), "%s: member %d", what, i)
		}
	}
}

// stop stops a member in order.
func (w *world) stop(i int) {
	w.t.Helper()
	w.members[i].Hangup()
	require.Equal(w.t, 0, w.members[i].ExitCode())
}

// restart replaces the process of a member. The others go on.
func (w *world) restart(i int) {
	w.t.Helper()
	w.stop(i)
	w.members[i] = w.launch(w.members[i].spec, w.members[i].address)
	await(w.t, w.well)
}

// refusedNothing checks that no member has refused anything of the others.
func (w *world) refusedNothing() {
	w.t.Helper()
	for _, p := range w.members {
		s, err := p.status()
		require.NoError(w.t, err)
		delete(s.Refusals, "unlisted") // a member that starts is seen by others at different times
		for reason, n := range s.Refusals {
			require.Zero(w.t, n, "%s at %s", reason, p.address)
		}
	}
}
