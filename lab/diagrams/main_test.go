package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pictures in docs/pictures are those that the text files give.
func TestPictures_AreThoseOfTheTexts(t *testing.T) {
	names, err := filepath.Glob("*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	fresh := t.TempDir()
	require.NoError(t, run(".", fresh))
	for _, name := range names {
		name = strings.TrimSuffix(name, ".txt") + ".svg"
		want, err := os.ReadFile(filepath.Join(fresh, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("../../docs/pictures", name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "run go run ./lab/diagrams")
	}
}

func TestDraw_LinesArrowsAndWords(t *testing.T) {
	svg, err := draw("┌─┐ a <b>\n└─┘  c\n ▲\n │ up\n")
	require.NoError(t, err)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
	require.Contains(t, svg, `d="M4 9H20M4 27H20M4 9V27M12 45V72M20 9V27"`)
	require.Contains(t, svg, `<text x="32" y="13" textLength="40">a &lt;b&gt;</text>`)
	require.Contains(t, svg, `<text x="40" y="31" textLength="8">c</text>`)
	require.Contains(t, svg, `<text x="24" y="67" textLength="16">up</text>`)
	require.Equal(t, 1, strings.Count(svg, `fill="#456"`)) // the head of the arrow
}

func TestDraw_NamesWhatItCannotDraw(t *testing.T) {
	for text, want := range map[string]string{
		"a\n╔":                            `line 2, column 1: '╔' cannot be drawn`,
		"a\tb":                            `line 1, column 2: '\t' cannot be drawn`,
		strings.Repeat("x", maxColumns+1): "line 1 has 111 columns, above 110",
		"\xff":                            "not UTF-8",
	} {
		_, err := draw(text)
		require.EqualError(t, err, want)
	}
	require.ErrorContains(t, run(t.TempDir(), t.TempDir()), "no *.txt")
}
