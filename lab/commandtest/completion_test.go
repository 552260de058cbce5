package commandtest

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompletion_CompletesCommandsAndFlags(t *testing.T) {
	script, err := exec.Command("go", "run", "../../cmd/concordctl", "completion", "bash").Output()
	require.NoError(t, err)
	complete := func(words ...string) string {
		sh := string(script) + "\nCOMP_LINE='concordctl " + strings.Join(words, " ") +
			"'; COMP_POINT=${#COMP_LINE}; _concordctl; echo ${COMPREPLY[@]}"
		out, err := exec.Command("bash", "-c", sh).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	require.Equal(t, "status store", complete("st"))
	require.Equal(t, "json", complete("status", "-o", "j"))
	require.Equal(t, "move", complete("m"))
	require.Equal(t, "-session", complete("leases", "-s"))
	require.Equal(t, "verify", complete("store", "v"))
	require.Equal(t, "leases", complete("-o", "json", "le"))
	require.Equal(t, "leases", complete("-o=json", "le"))
	require.Equal(t, "keys", complete("-at", "http://127.0.0.1:7070/", "ke"))
	require.Equal(t, "status store", complete("-limit", "3", "st"))
	require.Contains(t, complete(""), "status watch keys")
	require.Empty(t, complete("get", ""))
}
