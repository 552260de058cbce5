package config

import "strings"

// nearest returns the known word that a misspelled one most likely stands for, or "".
func nearest(text string, known []string) string {
	const longest = 64 // longer texts match nothing: keys are shorter
	best, found := 1+min(len(text), longest)/4, ""
	if len(text) > longest {
		return ""
	}
	text = strings.ToLower(strings.ReplaceAll(text, "_", "-"))
	for _, word := range known {
		if d := distance(text, word); d <= best && (found == "" || d < best) {
			best, found = d, word
		}
	}
	return found
}

// distance returns the edit distance of a and b: the number of insertions, deletions, replacements
// and swaps of neighbors.
func distance(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
