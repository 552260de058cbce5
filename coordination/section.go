package coordination

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Section configures the leases of one location, a name that code asks a Provider for.
type Section struct {
	// LeaseClass names the Opener of the store. Required.
	LeaseClass string `yaml:"lease-class"`
	// Config of the sessions; Owner is not taken from here. What is zero gets the defaults of DefaultSection.
	Config Config `yaml:",inline"`
	// Store is for the opener.
	Store map[string]any `yaml:"store"`
}

// DefaultSection fills what a Section leaves open: HeartbeatTimeout 120s, which is Config.TTL;
// heartbeat-interval TTL/10 but at least 5s, which is Config.RenewInterval, and never more than TTL/3;
// lease-operation-timeout 5s, or TTL/10 if that is less. The rest is as in Config.
func DefaultSection(s Section) Section {
	c := &s.Config
	defaultTo(&c.TTL, 120*time.Second)
	defaultTo(&c.RenewInterval, min(max(5*time.Second, c.TTL/10), c.TTL/3))
	defaultTo(&c.OperationTimeout, min(5*time.Second, c.TTL/10))
	return s
}

// EnvironmentPrefix begins the names of variables that ReadSections heeds.
const EnvironmentPrefix = "CONCORD_LEASE_"

const (
	defaultsName = "defaults"
	maxSections  = 1 << 20 // bytes
)

// ReadSections reads sections from YAML, of at most 1 MiB:
//
//	defaults:                    # what the sections below leave open
//	  heartbeat-timeout: 60s     # or "infinite", which is Config.Forever
//	sections:
//	  shop.billing:
//	    lease-class: file
//	    heartbeat-interval: 6s
//	    store: {directory: /var/lib/shop}
//
// Variables of environ, in the form of os.Environ, come before what is written there:
// CONCORD_LEASE_SHOP_BILLING_HEARTBEAT_TIMEOUT=90s, in capitals, with _ for whatever is no letter and no digit;
// and CONCORD_LEASE_DEFAULTS_... for the defaults. Keys below store have none.
//
// The error is ErrInvalid and tells all problems at once: keys and variables that mean nothing, values that
// are none, two locations that have the same variables.
func ReadSections(from io.Reader, environ []string) (map[string]Section, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxSections+1))
	if err != nil {
		return nil, fmt.Errorf("coordination: reading sections: %w", err)
	}
	if len(data) > maxSections {
		return nil, fmt.Errorf("%w: sections of more than %d bytes", ErrInvalid, maxSections)
	}
	var text struct {
		Defaults map[string]any            `yaml:"defaults"`
		Sections map[string]map[string]any `yaml:"sections"`
	}
	if err := decodeStrictly(data, &text); err != nil {
		return nil, fmt.Errorf("%w: sections: %w", ErrInvalid, err)
	}
	layers := map[string]map[string]any{}
	for location, own := range text.Sections {
		layers[location] = maps.Clone(own)
	}
	if _, taken := layers[defaultsName]; taken {
		return nil, fmt.Errorf("%w: no section may be called %q", ErrInvalid, defaultsName)
	}
	layers[defaultsName] = text.Defaults
	for location, own := range layers {
		if own == nil {
			layers[location] = map[string]any{}
		}
	}
	errs := override(layers, environ)
	sections := map[string]Section{}
	for _, location := range slices.Sorted(maps.Keys(text.Sections)) {
		s, err := sectionOf(layers[defaultsName], layers[location])
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: section %q: %w", ErrInvalid, location, err))
		}
		sections[location] = s
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return sections, nil
}

// sectionOf lays a section over the defaults.
func sectionOf(defaults, own map[string]any) (s Section, err error) {
	all := maps.Clone(defaults)
	maps.Copy(all, own)
	if all["heartbeat-timeout"] == "infinite" {
		delete(all, "heartbeat-timeout")
		all["forever"] = true
	}
	err = transcode(all, &s)
	return s, err
}

// transcode decodes settings into a value, and refuses those that it has no place for.
func transcode(settings map[string]any, into any) error {
	data, err := yaml.Marshal(settings)
	if err != nil {
		return err
	}
	return decodeStrictly(data, into)
}

// decodeStrictly decodes one document. YAML without any is an empty one.
func decodeStrictly(data []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// place is what a variable sets.
type place struct{ location, key string }

// override puts the variables of the environment in their places.
func override(layers map[string]map[string]any, environ []string) (errs []error) {
	places, errs := variables(slices.Sorted(maps.Keys(layers)))
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, EnvironmentPrefix) {
			continue
		}
		p, ok := places[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%w: variable %s belongs to no key of a section", ErrInvalid, name))
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			errs = append(errs, fmt.Errorf("%w: variable %s: %w", ErrInvalid, name, err))
			continue
		}
		layers[p.location][p.key] = value
	}
	return errs
}

// variables are those of all keys of all locations, each of which must have its own.
func variables(locations []string) (places map[string]place, errs []error) {
	places = map[string]place{}
	for _, location := range locations {
		for _, key := range sectionKeys() {
			name := variable(location, key)
			if first, taken := places[name]; taken {
				errs = append(errs, fmt.Errorf("%w: variable %s is for %s of %q and for %s of %q", ErrInvalid, name,
					first.key, first.location, key, location))
			}
			places[name] = place{location, key}
		}
	}
	return places, errs
}

// sectionKeys are those that a variable may set.
func sectionKeys() []string {
	keys := []string{"lease-class"}
	for f := range reflect.TypeFor[Config]().Fields() {
		if key := f.Tag.Get("yaml"); key != "-" && key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func variable(location, key string) string {
	return EnvironmentPrefix + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, location+"_"+key)
}
