package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGuarantees_EveryPromiseNamesATest: a promise is a paragraph that begins in bold. Without a
// test it is void; TestPages_NameWhatExists checks that the tests exist.
func TestGuarantees_EveryPromiseNamesATest(t *testing.T) {
	page, err := os.ReadFile("guarantees.md")
	require.NoError(t, err)
	promises := 0
	for paragraph := range strings.SplitSeq(string(page), "\n\n") {
		if !strings.HasPrefix(paragraph, "**") {
			continue
		}
		promises++
		require.Regexp(t, testName, paragraph)
	}
	require.Greater(t, promises, 50)
}
