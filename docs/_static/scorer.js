// The order of search results: pages of users before the developers' corner and the changelog.
var Scorer = {
  score: (result) => {
    const [docname, , , , score] = result;
    return /^(developers\/|changelog|generated\/data)/.test(docname) ? score - 12 : score;
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
