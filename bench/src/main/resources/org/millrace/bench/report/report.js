// Rows of each grid: those that have all words of the filter, in the order of one of their numbers, or as they were.
(function () {
  var filter = document.getElementById('filter'), sort = document.getElementById('sort');
  var grids = Array.prototype.map.call(document.querySelectorAll('.grid'), function (grid) {
    var group = '', heading = grid.previousElementSibling.textContent;
    return {grid: grid, parts: Array.prototype.filter.call(grid.children, function (each) {
      if (each.className === 'group') { group = each.textContent; }
      each.words = (heading + ' ' + group + ' ' + each.textContent).toLowerCase();
      each.group = group;
      return !each.classList.contains('head');
    })};
  });
  function show() {
    var words = filter.value.toLowerCase().split(/\s+/), key = sort.value;
    grids.forEach(function (each) {
      var parts = each.parts.slice(), full = {};
      if (key) {
        parts.sort(function (a, b) { return (Number(b.dataset[key]) || 0) - (Number(a.dataset[key]) || 0); });
      }
      parts.forEach(function (part) {
        each.grid.appendChild(part);
        part.hidden = !words.every(function (word) { return part.words.indexOf(word) >= 0; });
        if (part.className === 'row' && !part.hidden) { full[part.group] = true; }
      });
      parts.forEach(function (part) {
        if (part.className === 'group') { part.hidden = Boolean(key) || !full[part.group]; }
      });
    });
  }
  filter.addEventListener('input', show);
  sort.addEventListener('change', show);
})();
