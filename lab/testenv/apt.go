package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// install installs Debian packages. It must run as root.
func (e *environment) install(ctx context.Context, packages ...string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("not root on a Debian: install what Debian calls %s",
			strings.Join(packages, ", "))
	}
	e.installing.Lock() // apt does not wait for another apt
	defer e.installing.Unlock()
	e.say("testenv: installing %s (a minute, once)\n", strings.Join(packages, ", "))
	for _, args := range [][]string{{"update", "-qq"},
		append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)} {
		err := again(ctx, func() error {
			cmd := exec.CommandContext(ctx, apt, args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
