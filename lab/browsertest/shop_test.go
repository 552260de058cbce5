//go:build browser

package browsertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// shop is a quickstart that continues to run until the end of the test.
type shop struct {
	t      *testing.T
	url    string // cockpit of the first node
	victim int    // process id of its third node
	ctl    string // program concordctl
	orders io.Writer

	mu   sync.Mutex
	said bytes.Buffer
}

func (s *shop) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.Write(p)
}

func (s *shop) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func startShop(t *testing.T) *shop {
	t.Helper()
	bin := t.TempDir()
	out, err := exec.Command("go", "build", "-o", bin, "../../examples/quickstart",
		"../../cmd/concordctl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s := &shop{t: t, ctl: filepath.Join(bin, "concordctl")}
	cmd := exec.Command(filepath.Join(bin, "quickstart"), "-ui", "-kill", "none")
	cmd.Stdout, cmd.Stderr = s, s
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.orders, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		require.NoError(t, cmd.Wait(), "the exit status after Ctrl-C must be 0: %s", s.text())
	})
	found := regexp.MustCompile(`(http://\S+)\n(?s:.*)kill -9 (\d+)(?s:.*)Ctrl-C`)
	require.Eventually(t, func() bool {
		return found.MatchString(s.text())
	}, time.Minute, 100*time.Millisecond, "%s", s.text())
	m := found.FindStringSubmatch(s.text())
	s.url = m[1]
	s.victim, err = strconv.Atoi(m[2])
	require.NoError(t, err)
	return s
}

// order types a line into the quickstart.
func (s *shop) order(word string) {
	s.t.Helper()
	_, err := io.WriteString(s.orders, word+"\n")
	require.NoError(s.t, err)
}

// get requests JSON from the cockpit of the first node.
func get[T any](s *shop, path string) (v T) {
	s.t.Helper()
	res, err := http.Get(s.url + "api/v1/" + path)
	require.NoError(s.t, err)
	defer res.Body.Close()
	require.Equal(s.t, http.StatusOK, res.StatusCode, path)
	require.NoError(s.t, json.NewDecoder(res.Body).Decode(&v))
	return v
}

// last returns the address of the third node and the URL of its cockpit.
func (s *shop) last() (address, url string) {
	peers := get[[]api.Peer](s, "peers")
	require.Len(s.t, peers, 2)
	return peers[1].Self, peers[1].URL + "/"
}

// concordctl runs the program against the cockpit of the first node, and returns its output.
func (s *shop) concordctl(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(s.ctl, append([]string{"-at", s.url}, args...)...).CombinedOutput()
	require.NoError(s.t, err, "%v: %s", args, out)
	return string(out)
}

// firstMissing polls a node until it reports a missing member, and returns the time of that report.
func firstMissing(t *testing.T, url string) time.Time {
	for {
		res, err := http.Get(url + "api/v1/cluster")
		if err == nil {
			raw, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if bytes.Contains(raw, []byte(`"lost":["`)) {
				return time.Now()
			}
		}
		select {
		case <-t.Context().Done():
			return time.Now()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
