package membership

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// VersionPrefix marks a kind that is only the application version of its member.
const VersionPrefix = "version."

// maxVersion bounds an application version in bytes, so that a Kubernetes label can hold the kind.
const maxVersion = 32

// CheckVersion returns why a text is not an application version: numbers separated by dots, with an
// optional "v" before and an optional pre-release after a "-", as in "v1.12.0-rc.2".
func CheckVersion(v string) error {
	if v == "" || len(v) > maxVersion {
		return fmt.Errorf("application version %q has %d bytes, it must have from 1 to %d", v,
			len(v), maxVersion)
	}
	numbers, pre, hasPre := strings.Cut(strings.TrimPrefix(v, "v"), "-")
	for n := range strings.SplitSeq(numbers, ".") {
		if _, err := strconv.ParseUint(n, 10, 64); err != nil || n[0] == '+' {
			return fmt.Errorf(
				"application version %q must begin with numbers separated by dots, each below 2^64",
				v)
		}
	}
	if hasPre {
		for id := range strings.SplitSeq(pre, ".") {
			if id == "" || strings.ContainsFunc(id, unfit) || strings.HasSuffix(pre, "-") {
				return fmt.Errorf(
					"application version %q must have letters, digits and inner \"-\" after the first \"-\", separated by dots", v)
			}
		}
	}
	return nil
}

func unfit(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
}

// CompareVersions compares two application versions by the precedence of Semantic Versioning, with
// any number of numbers; missing ones are 0. "", no version, is lower than each version.
func CompareVersions(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(min(len(a), 1), min(len(b), 1))
	}
	an, ap, apre := strings.Cut(strings.TrimPrefix(a, "v"), "-")
	bn, bp, bpre := strings.Cut(strings.TrimPrefix(b, "v"), "-")
	if c := compareParts(an, bn, true); c != 0 {
		return c
	}
	switch {
	case apre && bpre:
		return compareParts(ap, bp, false)
	case apre:
		return -1
	case bpre:
		return 1
	}
	return 0
}

// compareParts compares texts part by part. Missing parts are zeros, or lower than all others.
func compareParts(a, b string, zeros bool) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if !zeros && (i >= len(as) || i >= len(bs)) {
			return cmp.Compare(len(as), len(bs))
		}
		x, y := "0", "0"
		if i < len(as) {
			x = as[i]
		}
		if i < len(bs) {
			y = bs[i]
		}
		if c := comparePart(x, y); c != 0 {
			return c
		}
	}
	return 0
}

// comparePart compares numbers by value, and below all other parts, which are compared as texts.
func comparePart(a, b string) int {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return strings.Compare(a, b)
}
