package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
)

// memberEnv has the index of a member and, after a space, the ports of all: of remoting, then of
// health requests.
const memberEnv = "CONCORD_FIRST_MEMBER"

func TestMain(m *testing.M) {
	if of := strings.Fields(os.Getenv(memberEnv)); len(of) == 7 {
		index, _ := strconv.Atoi(of[0])
		var hosts []string
		for _, port := range of[4:] {
			hosts = append(hosts, "127.0.0.1:"+port)
		}
		port, _ := strconv.Atoi(of[1+index])
		health, _ := strconv.Atoi(of[4+index])
		node.Main(member(port, health, hosts...), register)
	}
	goleak.VerifyTestMain(m)
}

// Three members count on a majority. While two of them are paused the third counts alone, and on a
// majority again afterwards. A member that was killed and started again counts on a majority too.
func TestMembers_CountOnAMajority(t *testing.T) {
	free := strings.Trim(fmt.Sprint(ports.Free(t, 6)), "[]")
	start := func(index int) (*child.Process, <-chan string) {
		lines := make(chan string, 1000)
		return child.Start(t, []string{fmt.Sprintf("%s=%d %s", memberEnv, index, free)},
			func(line []byte) {
				lines <- string(line)
			}), lines
	}
	expect := func(lines <-chan string, text string) {
		t.Helper()
		for deadline := time.After(time.Minute); ; {
			select {
			case line := <-lines:
				if strings.Contains(line, text) {
					return
				}
			case <-deadline:
				t.Fatalf("nobody printed %q", text)
			}
		}
	}
	_, first := start(0)
	second, _ := start(1)
	third, _ := start(2)
	const majority, alone = "on a majority", "1 of 3 members seen"
	expect(first, majority)
	require.NoError(t, second.Signal(syscall.SIGSTOP))
	require.NoError(t, third.Signal(syscall.SIGSTOP))
	expect(first, alone)
	require.NoError(t, second.Signal(syscall.SIGCONT))
	require.NoError(t, third.Signal(syscall.SIGCONT))
	expect(first, majority)
	third.Kill()
	_, again := start(2)
	expect(again, majority)
}
