package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
)

// hostsEnv has the health addresses of all members.
const hostsEnv = "CONCORD_HELLO_HOSTS"

func TestMain(m *testing.M) {
	if of := os.Getenv(hostsEnv); of != "" {
		port, others, _ := strings.Cut(of, " ")
		os.Args, hosts = []string{"hello", "-port", port}, strings.Fields(others)
		main()
	}
	goleak.VerifyTestMain(m)
}

// Each of three processes prints the set with the guests of all three.
func TestMembers_PrintAllGuests(t *testing.T) {
	var all []int
	for len(all) < 3 { // the health port is the other one and 1000
		if p := ports.Free(t, 1)[0]; p < 31_000 {
			all = append(all, p)
		}
	}
	var where []string
	for _, p := range all {
		where = append(where, fmt.Sprintf("127.0.0.1:%d", p+1000))
	}
	full := make(chan bool, 3)
	for _, p := range all {
		told := false
		child.Start(t, []string{fmt.Sprintf("%s=%d %s", hostsEnv, p, strings.Join(where, " "))},
			func(line []byte) {
				if !told && strings.Count(string(line), "guest ") == 3 {
					told = true
					full <- true
				}
			})
	}
	for range all {
		select {
		case <-full:
		case <-time.After(time.Minute):
			t.Fatal("a member did not print the three guests within a minute")
		}
	}
}
