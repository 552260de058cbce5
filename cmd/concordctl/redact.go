package main

import (
	"bytes"
	"net/url"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// withoutSecrets returns a YAML file without its comments and without what may be a secret: the
// values of keys whose names say so, passwords in URLs, and defaults of variables. It returns nil
// without a name.
func withoutSecrets(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fails(exitNone, "-config: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fails(exitInvalid, "-config: %s is not a YAML file", name)
	}
	redact(&doc, false)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

var (
	secretKey    = regexp.MustCompile(`(?i)secret|passw|token|credential|signature|(^|[-_])key$|dsn`)
	variable     = regexp.MustCompile(`\$\{([^}:]*):-[^}]*\}`)
	passwordPair = regexp.MustCompile(`(?i)(password|passwd|sslpassword)\s*=\s*('[^']*'|\S+)`)
)

const redacted = "(removed)"

// redact removes secrets below n, and everything if all is set.
func redact(n *yaml.Node, all bool) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	switch n.Kind {
	case yaml.ScalarNode:
		n.Value = open(n.Value, all)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			redact(key, false)
			// A file of a secret is named, and its content is not read.
			file := strings.HasSuffix(key.Value, "-file") || strings.HasSuffix(key.Value, "_file")
			redact(value, all || secretKey.MatchString(key.Value) && !file)
		}
	default:
		for _, c := range n.Content {
			redact(c, all)
		}
	}
}

// open returns the part of a value that is no secret.
func open(value string, secret bool) string {
	if secret {
		return redacted
	}
	value = variable.ReplaceAllString(value, "${$1:-"+redacted+"}")
	value = passwordPair.ReplaceAllString(value, "$1="+redacted)
	if u, err := url.Parse(value); err == nil && u.User != nil {
		u.User = url.User(redacted)
		u.RawQuery = ""
		value = u.String()
	}
	return value
}
