// Reads dashboards as Grafana's own library does, strictly: an unknown or missing field of a panel is an error.
// It prints a line of JSON for each file: its panels by their kinds, the number of its queries, and what is wrong.
package main

import (
	"encoding/json"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

type seen struct {
	File    string         `json:"file"`
	Panels  map[string]int `json:"panels"`
	Queries int            `json:"queries"`
	Wrong   string         `json:"wrong"`
}

func read(path string) seen {
	found := seen{File: path, Panels: map[string]int{}}
	raw, err := os.ReadFile(path)
	if err != nil {
		found.Wrong = err.Error()
		return found
	}
	// The library's strict reading gives an empty list of errors, which is not nil, for a part without an error,
	// and then leaves the part out. So the strict reading judges, and an ordinary one counts.
	var judged, counted dashboard.Dashboard
	if err := judged.UnmarshalJSONStrict(raw); err != nil && err.Error() != "" {
		found.Wrong = err.Error()
		return found
	}
	if err := json.Unmarshal(raw, &counted); err != nil {
		found.Wrong = err.Error()
		return found
	}
	for _, each := range counted.Panels {
		if each.RowPanel != nil {
			found.Panels["row"]++
			continue
		}
		found.Panels[each.Panel.Type]++
		found.Queries += len(each.Panel.Targets)
	}
	return found
}

func main() {
	plugins.RegisterDefaultPlugins()
	printed := json.NewEncoder(os.Stdout)
	for _, path := range os.Args[1:] {
		if err := printed.Encode(read(path)); err != nil {
			panic(err)
		}
	}
}
