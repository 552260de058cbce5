package disktest

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// This test checks what a machine finds after a power loss: the blocks that have reached the disk.
// The disk is an image here, copied while a process writes to it. Data written but not synced is
// not in it. Where nothing can be mounted, the files are copied instead, with everything that was
// written.
func TestPowerCut_LeavesWhatWasAcknowledged(t *testing.T) {
	each(t, func(t *testing.T, k kind, random *rand.Rand) {
		dir, image := newDir(t), ""
		if mayMount(t) {
			image = newImage(t, k.room+256)
			dir = filepath.Join(mountImage(t, image), "rows")
		}
		w := startWriter(t, k, dir, 1)
		for range *cuts {
			w.wait(t, random.IntN(200))
			told := freeze(t, w)
			var copied string
			if image == "" {
				copied = copyDir(t, dir)
			} else {
				copied = copyImage(t, image)
			}
			require.NoError(t, w.Signal(syscall.SIGCONT))
			if image == "" {
				holds(t, k, copied, told)
				continue
			}
			at := mountImage(t, copied)
			holds(t, k, filepath.Join(at, "rows"), told)
			unmount(t, at)
			require.NoError(t, os.RemoveAll(filepath.Dir(copied)))
		}
		w.Kill()
		require.Empty(t, w.Stderr())
		t.Logf("%d power cuts, %d batches", *cuts, w.told.Load())
	})
}

// freeze stops the writer wherever it is, and returns the last number that it printed.
func freeze(t *testing.T, w *writer) (told int64) {
	t.Helper()
	require.NoError(t, w.Signal(syscall.SIGSTOP))
	return w.told.Load()
}

// mayMount reports whether file systems can be mounted, and logs it if not.
func mayMount(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		at := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=1m",
			"none", at).CombinedOutput(); err != nil {
			t.Logf("mount: %s", out)
		} else {
			unmount(t, at)
			return true
		}
	}
	if *mounts {
		t.Fatal("no file system can be mounted: this takes root on Linux")
	}
	t.Log("LEFT OUT: no file system can be mounted, which takes root on Linux")
	return false
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
}

func unmount(t *testing.T, at string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "umount", at).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// mount mounts a file system, and unmounts it at the end of the test.
func mount(t *testing.T, args ...string) (at string) {
	t.Helper()
	at = t.TempDir()
	run(t, "mount", append(args, at)...)
	t.Cleanup(func() { _ = exec.Command("umount", "-l", at).Run() })
	return at
}

// newImage creates an image of a disk with a file system.
func newImage(t *testing.T, megabytes int) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, int64(megabytes)<<20))
	run(t, "mkfs.ext4", "-q", "-J", "size=4", "-E", "lazy_itable_init=1,lazy_journal_init=1", image)
	return image
}

func mountImage(t *testing.T, image string) string { return mount(t, "-o", "loop", image) }

// copyImage copies an image as of one instant: it retries if the system has written meanwhile.
func copyImage(t *testing.T, image string) string {
	t.Helper()
	for range 20 {
		to := filepath.Join(t.TempDir(), "image")
		run(t, "cp", "--sparse=auto", image, to)
		if exec.CommandContext(t.Context(), "cmp", "-s", image, to).Run() == nil {
			return to
		}
	}
	require.Fail(t, "the image never stands still")
	return ""
}
