// The order of search results: pages whose title has the words first; pages of users before the developers' corner and
// the changelog.
const asked = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\s+/);
var Scorer = {
  score: (result) => {
    const [docname, title, , , score] = result;
    const named = asked.filter((word) => word.length > 2 && title.toLowerCase().includes(word)).length;
    const apart = /^(developers\/|changelog|generated\/(data|words|changelog))/.test(docname) ? 12 : 0;
    return score + 4 * named - apart;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
