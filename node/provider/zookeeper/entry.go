package zookeeper

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// entry is the data of a member's node, in the format of Proto.Actor's provider.
type entry struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Host    string   `json:"host"`
	Address string   `json:"address"`
	Port    int      `json:"port"`
	Kinds   []string `json:"kinds"`
	Alive   bool     `json:"alive"`
}

func encode(m roster.Member) ([]byte, error) {
	kinds := m.Kinds
	if kinds == nil {
		kinds = []string{}
	}
	return json.Marshal(entry{m.ID, m.ID, m.Host, m.Host, m.Port, kinds, true})
}

// decode decodes the node with this name. The sequence number that ZooKeeper appended to the name
// is the Order.
func decode(name string, data []byte) (roster.Member, error) {
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return roster.Member{}, fmt.Errorf("node %.200q: %w", name, err)
	}
	if e.Host == "" {
		e.Host = e.Address
	}
	if e.ID == "" || e.Host == "" || e.Port < 1 || e.Port > 65535 {
		return roster.Member{},
			fmt.Errorf("node %.200q: no id, no host, or port %d, which must be from 1 to 65535",
				name, e.Port)
	}
	order, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 64)
	if err != nil {
		return roster.Member{}, fmt.Errorf("node %.200q has no number: %w", name, err)
	}
	return roster.Member{ID: e.ID, Host: e.Host, Port: e.Port, Kinds: e.Kinds, Order: order}, nil
}
