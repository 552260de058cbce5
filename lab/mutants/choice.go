package main

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// choice selects bugs. Its zero value selects all of them.
type choice struct {
	names, files string // regular expressions
	log          string // a file of verdicts, or empty
}

// killedBy separates the name of a killed bug from its killer in a line of the log.
const killedBy = ": killed by "

// of returns the selected bugs: those that match, without those that the log calls killed.
func (c choice) of(all []mutant) ([]mutant, error) {
	names, err := regexp.Compile(c.names)
	if err != nil {
		return nil, err
	}
	files, err := regexp.Compile(c.files)
	if err != nil {
		return nil, err
	}
	killed, err := c.killed()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
		return killed[m.name] || !names.MatchString(m.name) || !files.MatchString(m.files[0])
	}), nil
}

// killed returns the names of the bugs that the log calls killed.
func (c choice) killed() (map[string]bool, error) {
	if c.log == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	killed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, killedBy); ok {
			killed[name] = true
		}
	}
	return killed, nil
}

// note appends a verdict to the log.
func (c choice) note(line string) error {
	if c.log == "" {
		return nil
	}
	f, err := os.OpenFile(c.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
