package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// startPostgres starts a server with its own data. It installs Debian's package if PostgreSQL is
// missing.
func startPostgres(ctx context.Context, e *environment) error {
	bin, err := e.postgresPrograms(ctx)
	if err != nil {
		return err
	}
	port, err := e.free()
	if err != nil {
		return err
	}
	dir := filepath.Join(e.temp, "postgres")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	as := ""
	if os.Geteuid() == 0 { // it refuses to run as root
		as = "postgres"
		if out, err := exec.CommandContext(ctx, "chown", as, dir).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	data, log := filepath.Join(dir, "data"), filepath.Join(dir, "log")
	control := func(verb string) string {
		return shell(as, fmt.Sprintf(
			"'%s/pg_ctl' -D '%s' -w -t 60 -m immediate -l '%s' -o '-p %s -k %s -c listen_addresses=127.0.0.1' %s", bin, data, log, port, dir, verb))
	}
	initdb := shell(as, fmt.Sprintf("'%s/initdb' -D '%s' -A trust -U concord", bin, data))
	for _, command := range []string{initdb, control("start")} {
		// Not CombinedOutput: the server would keep the pipe open.
		if err := quietly(ctx, filepath.Join(e.temp, "postgres-start.log"), command); err != nil {
			return fmt.Errorf("%w\n%s", err, tail(log))
		}
	}
	e.atEnd(func() { _ = quietly(context.Background(), os.DevNull, control("stop")) })
	e.set("CONCORD_POSTGRES", "host=127.0.0.1 port="+port+" user=concord dbname=postgres")
	e.set("CONCORD_POSTGRES_RESTART", control("restart")+" >/dev/null 2>&1")
	return nil
}

// shell returns a command line that runs as another user if one is given.
func shell(as, command string) string {
	if as == "" {
		return command
	}
	return "su " + as + " -c \"" + command + "\""
}

func quietly(ctx context.Context, log, command string) error {
	f, err := os.Create(log)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = os.TempDir(), f, f
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, tail(log))
	}
	return nil
}

func (e *environment) postgresPrograms(ctx context.Context) (string, error) {
	if dir := newestPostgres(); dir != "" {
		return dir, nil
	}
	if err := e.install(ctx, "postgresql"); err != nil {
		return "", err
	}
	if dir := newestPostgres(); dir != "" {
		return dir, nil
	}
	return "", errors.New("initdb is missing after the package was installed")
}

// newestPostgres returns the directory of initdb and pg_ctl, which distributions do not put into
// PATH.
func newestPostgres() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) > 0 {
		return filepath.Dir(slices.Max(found))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}
