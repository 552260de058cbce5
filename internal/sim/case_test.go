package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/sim"
)

const text = `# not equal 30s after the faults ended
pick late #2 yes
pick members 5
pick push at 8.21s 1.2ms
at 8.21s update 2 majority add s0/a 5
at 9s cut 0 1 for 3s
message 0>1 #14 lost
message 0>1 #15 +31ms +200ms
message 3>0 at 2.5s +1s
`

func TestCase_TextIsReadAndWritten(t *testing.T) {
	c, err := sim.ParseCase([]byte(text))
	require.NoError(t, err)
	require.Equal(t, text, c.String())
	require.Equal(t, 2, c.Acts())
	require.Equal(t, 8, c.Size())
}

func TestCase_SaysAllThatHappens(t *testing.T) {
	var got []string
	failure, story := sim.PlayCase([]byte(text), func(w *sim.World) {
		w.Delay = time.Millisecond
		note := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
		for _, verb := range []string{"update", "cut"} {
			w.Can(verb, func(a sim.Args) { note("%v %s %v", w.Elapsed(), verb, a.Words) })
		}
		w.Act(0, "update", "made up, and left out")
		note("members %d %d", w.Number("members", 3, 5), w.Number("members", 3, 5))
		note("late %v %v", w.Chance("late", 0), w.Chance("late", 0))
		w.After(8210*time.Millisecond, func() {
			note("push %v %v", w.Span("push", 0, time.Second), w.Span("push", 0, time.Second))
		})
		for n := range 15 {
			w.Send(0, 1, n+1, func() {
				if n >= 12 {
					note("%v message %d", w.Elapsed(), n+1)
				}
			})
		}
		w.Until(10 * time.Second)
	})
	require.Empty(t, failure)
	require.Equal(t, []string{
		"members 5 3", "late false true",
		"1ms message 13", "32ms message 15", "201ms message 15",
		"push 1.2ms 0s", "8.21s update [2 majority add s0/a 5]", "9s cut [0 1 for 3s]",
	}, got)
	require.Contains(t, story, "8.21s  — update 2 majority add s0/a 5")
}

func TestCase_MistakesAreNamedWithTheirLine(t *testing.T) {
	for line, want := range map[string]string{
		"hello":                    "want: pick NAME [at TIME]",
		"at 3s":                    "want: pick",
		"at soon go":               `"soon" must be a duration`,
		"at -3s go":                `"-3s" must be a duration, and not negative`,
		"pick a #x 3":              `"#x" must be # and a number from 1`,
		"pick a at 3s":             "pick a: want one value",
		"pick a maybe":             `"maybe" must be yes, a number or a duration`,
		"message 1>2 14 lost":      `"14" must be a duration`,
		"message 1-2 #14 lost":     `"1-2" must be two places, as in 0>1`,
		"message 1>2 #14 -3s":      `"-3s" must be a duration, and not negative`,
		"message 1>2 #14 3s 4s 5s": "want lost, or one or two delays",
	} {
		_, err := sim.ParseCase([]byte("# fine\n" + line + "\n"))
		require.ErrorContains(t, err, "line 2", line)
		require.ErrorContains(t, err, want, line)
	}
}

func TestCase_AChoiceOutOfBoundsIsNamed(t *testing.T) {
	failure, _ := sim.PlayCase([]byte("pick members 9"), func(w *sim.World) {
		w.Number("members", 3, 5)
	})
	require.Equal(t, "pick members is 9, must be from 3 to 5", failure)
}

func FuzzParseCase(f *testing.F) {
	f.Add([]byte(text))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := sim.ParseCase(b)
		if err != nil {
			return
		}
		again, err := sim.ParseCase([]byte(c.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, c)
		}
		if again.String() != c.String() {
			t.Fatalf("%s\nbecomes\n%s", c, again)
		}
	})
}
